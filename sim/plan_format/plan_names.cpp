// SPDX-License-Identifier: Apache-2.0
#include "sim/plan_format/plan_names.hpp"

#include <algorithm>

#include "sim/base/utf8.hpp"
#include "sim/workload/blocks.hpp"

namespace stagecraft {
namespace {

using Index = std::unordered_map<std::string, int>;

std::string unknown_in(const Index& index, const std::string& name, std::string_view what) {
  std::vector<std::string> known;
  for (const auto& [key, value] : index) {
    known.push_back(key);
  }
  std::sort(known.begin(), known.end());
  constexpr std::size_t kMostListed = 20;
  if (known.size() <= kMostListed) {
    return unknown_name(what, name, known);
  }
  const std::string close = nearest(name, known);
  return "unknown " + std::string(what) + " '" + excerpt(name) + "'; " +
         (close.empty() ? "" : "did you mean '" + close + "'? ") + "known: " + std::to_string(known.size()) +
         ", which `stagecraft show` lists";
}

using Layers = std::vector<std::vector<OperatorId>>;

Layers operators_one_by_one(const ModelGraph& model) {
  Layers layers;
  for (OperatorId op = 0; op < model.size(); ++op) {
    layers.push_back({op});
  }
  return layers;
}

Layers blocks_one_by_one(const ModelGraph& model) {
  Layers layers;
  for (Block& block : blocks_of(model)) {
    layers.push_back(std::move(block.operators));
  }
  return layers;
}

Layers numbered_blocks(const ModelGraph& model) {
  LayerRow row = layer_row_of(model);
  Layers layers;
  for (Block& block : row.layers) {
    layers.push_back(std::move(block.operators));
  }
  if (!layers.empty()) {
    layers.front().insert(layers.front().begin(), row.before.begin(), row.before.end());
    layers.back().insert(layers.back().end(), row.after.begin(), row.after.end());
  }
  return layers;
}

} // namespace

PlanNames::PlanNames(const ModelGraph& model, const Platform& platform) {
  for (OperatorId op = 0; op < model.size(); ++op) {
    operators_.emplace(model.operators[op].name, op);
  }
  for (std::size_t device = 0; device < platform.devices.size(); ++device) {
    devices_.emplace(platform.devices[device].name, static_cast<int>(device));
  }
}

OperatorId PlanNames::operator_of(const std::string& name, const Where& where) const {
  const auto found = operators_.find(name);
  if (found == operators_.end()) {
    throw InputError(where, unknown_in(operators_, name, "operator"));
  }
  return found->second;
}

std::vector<OperatorId> PlanNames::operators_of(const std::vector<const yaml::Node*>& list,
                                                std::vector<const yaml::Node*>& unknown) const {
  std::vector<OperatorId> operators;
  for (const yaml::Node* item : list) {
    const auto found = operators_.find(yaml::scalar(*item, "operator"));
    if (found != operators_.end()) {
      operators.push_back(found->second);
    } else {
      unknown.push_back(item);
    }
  }
  std::sort(operators.begin(), operators.end());
  return operators;
}

void PlanNames::refuse(const std::vector<const yaml::Node*>& unknown) const {
  if (unknown.empty()) {
    return;
  }
  constexpr std::size_t kMostTold = 8;
  std::vector<std::string> others;
  for (std::size_t i = 1; i < unknown.size() && i < kMostTold; ++i) {
    others.push_back("'" + excerpt(unknown[i]->text) + "' in line " + std::to_string(unknown[i]->where.line));
  }
  if (unknown.size() > kMostTold) {
    others.push_back(std::to_string(unknown.size() - kMostTold) + " more");
  }
  throw InputError(unknown.front()->where, unknown_in(operators_, unknown.front()->text, "operator") +
                                               (others.empty() ? "" : "; unknown too: " + join(others)));
}

DeviceId PlanNames::device_of(const std::string& name, const Where& where) const {
  if (const auto found = devices_.find(name); found != devices_.end()) {
    return found->second;
  }
  const std::string rank = name.starts_with("cuda:") ? name.substr(5) : name;
  if (!rank.empty() && rank.find_first_not_of("0123456789") == std::string::npos) {
    return parse_integer(rank, 0, kMostRank, where);
  }
  throw InputError(where, unknown_in(devices_, name, "device"));
}

std::vector<std::vector<OperatorId>> layers_by_count(const ModelGraph& model, long long count, const Where& where) {
  Layers operators = operators_one_by_one(model);
  Layers blocks = blocks_one_by_one(model);
  Layers numbered = numbered_blocks(model);
  const bool loss = model.size() > 1 && is_loss(model.operators.back());
  for (Layers* layers : {&operators, &blocks, &numbered}) {
    if (static_cast<long long>(layers->size()) == count) {
      return std::move(*layers);
    }
    const bool alone = loss && layers->size() > 1 && layers->back().size() == 1;
    if (alone && static_cast<long long>(layers->size()) == count + 1) {
      const OperatorId last = layers->back().front();
      layers->pop_back();
      layers->back().push_back(last);
      return std::move(*layers);
    }
  }
  throw InputError(where, std::to_string(count) + " layers are counted here, and '" + excerpt(model.name) + "' has " +
                              std::to_string(operators.size()) + " operators, " + std::to_string(blocks.size()) +
                              " blocks, " + std::to_string(numbered.size()) +
                              " of them numbered; allowed: one of these numbers" +
                              (loss ? ", with or without the loss" : ""));
}

} // namespace stagecraft
