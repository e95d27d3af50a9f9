// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/blocks.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>

#include "sim/base/utf8.hpp"

namespace stagecraft {
namespace {

bool is_number(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

struct BlockName {
  std::string name;
  bool numbered = false;
};

BlockName block_name(std::string_view name) {
  std::size_t from = name.find_first_not_of("./");
  std::size_t last = std::string_view::npos; // position of the last separator seen
  while (from != std::string_view::npos) {
    const std::size_t end = std::min(name.find_first_of("./", from), name.size());
    if (is_number(name.substr(from, end - from)) && last != std::string_view::npos) {
      return {std::string(name.substr(0, end)), true};
    }
    if (end == name.size()) {
      break;
    }
    last = end;
    from = name.find_first_not_of("./", end);
  }
  return {std::string(name.substr(0, last)), false};
}

} // namespace

std::vector<Block> blocks_of(const ModelGraph& model) {
  std::vector<Block> blocks;
  std::map<std::string, std::size_t> index;
  for (OperatorId op = 0; op < model.size(); ++op) {
    BlockName name = block_name(model.operators[op].name);
    const auto [found, fresh] = index.emplace(name.name, blocks.size());
    if (fresh) {
      blocks.push_back({std::move(name.name), name.numbered, {}});
    }
    blocks[found->second].operators.push_back(op);
  }
  return blocks;
}

std::vector<int> block_numbers(const ModelGraph& model) {
  std::vector<int> numbers(model.size(), -1);
  int number = 0;
  for (const Block& block : blocks_of(model)) {
    if (block.numbered) {
      for (const OperatorId op : block.operators) {
        numbers[op] = number;
      }
      ++number;
    }
  }
  return numbers;
}

LayerRow layer_row_of(const ModelGraph& model) {
  LayerRow row;
  std::vector<int> layer(model.size(), -1);
  OperatorId last = -1;
  for (Block& block : blocks_of(model)) {
    if (block.numbered) {
      for (const OperatorId op : block.operators) {
        layer[op] = static_cast<int>(row.layers.size());
        last = std::max(last, op);
      }
      row.layers.push_back({std::move(block.name), true, {}});
    }
  }
  int current = -1;
  for (OperatorId op = 0; op < model.size(); ++op) {
    if (layer[op] >= 0) {
      current = layer[op];
      row.layers[current].operators.push_back(op);
    } else if (op > last) {
      row.after.push_back(op);
    } else if (current < 0) {
      row.before.push_back(op);
    } else {
      row.layers[current].operators.push_back(op);
    }
  }
  if (row.layers.empty()) {
    std::swap(row.before, row.after);
  }
  return row;
}

bool is_in_numbered_block(const std::string& name) { return block_name(name).numbered; }

bool is_loss(const Operator& op) {
  const std::string text = lower_case(op.name + " " + op.type);
  return text.find("loss") != std::string::npos || text.find("cross_entropy") != std::string::npos ||
         text.find("crossentropy") != std::string::npos;
}

} // namespace stagecraft
