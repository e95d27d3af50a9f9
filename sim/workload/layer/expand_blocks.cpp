// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/layer/expand_blocks.hpp"

#include <algorithm>
#include <span>

#include "sim/base/utf8.hpp"

namespace stagecraft {
namespace {

constexpr size_t kMostLayers = 100'000;
constexpr int kMostRepeats = 10'000;

// Keys of a use of a block; a block's parameters may not have these names.
constexpr std::string_view kUseKeys[] = {"block", "name", "repeat", "first", "inputs", "input"};

struct Block {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<const yaml::Node*> layers;
};

using Arguments = std::map<std::string, const yaml::Node*>;

std::vector<const yaml::Node*> layers_of(yaml::Map& map) {
  map.node("layers");
  std::vector<const yaml::Node*> layers = map.list("layers");
  if (layers.empty()) {
    throw InputError(map.where("layers"), "'layers' is empty; allowed: at least one layer");
  }
  return layers;
}

Block read_block(const yaml::Node& node) {
  yaml::Map map(node, "block");
  Block block;
  block.name = map.text("name");
  for (const yaml::Node* item : map.list("parameters")) {
    const std::string& parameter = yaml::scalar(*item, "parameters");
    if (std::find(std::begin(kUseKeys), std::end(kUseKeys), parameter) != std::end(kUseKeys)) {
      throw InputError(item->where, "a parameter cannot be called '" + parameter + "'; that key is a block's own");
    }
    block.parameters.push_back(parameter);
  }
  block.layers = layers_of(map);
  map.finish();
  return block;
}

// A copy of the node with every scalar "$parameter" replaced by its argument; "$input" stays.
yaml::Node substituted(const yaml::Node& node, const Arguments& arguments) {
  if (node.kind == yaml::Node::Kind::scalar && node.text.starts_with('$') && node.text != "$input") {
    const std::string name = node.text.substr(1);
    const auto found = arguments.find(name);
    if (found == arguments.end()) {
      std::vector<std::string> known = {"input"};
      for (const auto& [parameter, value] : arguments) {
        known.push_back(parameter);
      }
      throw InputError(node.where, unknown_name("parameter", name, known));
    }
    return *found->second;
  }
  yaml::Node copy = node;
  for (yaml::Node& item : copy.items) {
    item = substituted(item, arguments);
  }
  for (yaml::Node::Entry& entry : copy.entries) {
    entry.value = substituted(entry.value, arguments);
  }
  return copy;
}

class Expander {
public:
  void define(const yaml::Node& node) {
    Block block = read_block(node);
    if (find_block(block.name) != nullptr) {
      throw InputError(node.where, "duplicate block '" + block.name + "'; allowed: each name once");
    }
    blocks_.push_back(std::move(block));
  }

  /// Writes out one list of layers, the file's or a block's. Returns its output.
  LayerReference place(const std::vector<yaml::Node>& layers, const std::vector<std::string>& scopes,
                       const LayerReference& input, size_t visible_blocks) {
    LayerReference previous = input;
    for (const yaml::Node& node : layers) {
      previous = node.find("block") != nullptr ? place_block(node, scopes, input, previous, visible_blocks)
                                               : place_layer(node, scopes, input, previous);
    }
    return previous;
  }

  size_t blocks() const { return blocks_.size(); }
  PlacedLayers take() { return std::move(placed_); }

private:
  const Block* find_block(const std::string& name) const {
    const auto found =
        std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& block) { return block.name == name; });
    return found == blocks_.end() ? nullptr : &*found;
  }

  static std::string read_name(yaml::Map& map, const std::vector<std::string>& scopes) {
    const std::string name = map.text("name");
    if (name.empty() || name == kModelInputName || name.find_first_of("$, \t\n") != std::string::npos) {
      throw InputError(map.where("name"), "a layer cannot be called '" + excerpt(name) +
                                              "'; allowed: text without '$', commas and spaces, but not 'input'");
    }
    return scopes.front() + name;
  }

  static std::vector<LayerReference> read_inputs(yaml::Map& map, const std::vector<std::string>& scopes,
                                                 const LayerReference& input, const LayerReference& previous) {
    if (!map.has("inputs")) {
      return {previous};
    }
    std::vector<LayerReference> inputs;
    for (const yaml::Node* item : map.list("inputs")) {
      const std::string& name = yaml::scalar(*item, "inputs");
      LayerReference reference{{}, item->where};
      for (const std::string& scope : scopes) {
        reference.candidates.push_back(scope + name);
      }
      inputs.push_back(name == "$input" ? LayerReference{input.candidates, item->where} : reference);
    }
    return inputs;
  }

  LayerReference place_layer(const yaml::Node& node, const std::vector<std::string>& scopes,
                             const LayerReference& input, const LayerReference& previous) {
    yaml::Map map(node, "layer");
    PlacedLayer layer{read_name(map, scopes), node, read_inputs(map, scopes, input, previous)};
    if (placed_.layers.size() == kMostLayers) {
      throw InputError(node.where, "more than " + std::to_string(kMostLayers) + " layers");
    }
    placed_.layers.push_back(std::move(layer));
    return {{placed_.layers.back().name}, node.where};
  }

  LayerReference place_block(const yaml::Node& node, const std::vector<std::string>& scopes,
                             const LayerReference& input, LayerReference previous, size_t visible) {
    yaml::Map map(node, "use of a block");
    const Block& block =
        find_by_name(std::span(blocks_).first(visible), map.text("block"), "block", map.where("block"));
    const std::string name = read_name(map, scopes);
    const int repeat = map.integer("repeat", 1, kMostRepeats, 1);
    const int first = map.has("repeat") ? map.integer("first", 0, kMostRepeats, 0) : 0;
    const std::vector<LayerReference> inputs = read_inputs(map, scopes, input, previous);
    if (inputs.size() != 1) {
      throw InputError(map.where("inputs"), "a block has one input; hand it further layers as parameters");
    }
    Arguments arguments;
    for (const std::string& parameter : block.parameters) {
      arguments[parameter] = &map.node(parameter);
    }
    map.finish();
    std::vector<yaml::Node> layers;
    for (const yaml::Node* layer : block.layers) {
      layers.push_back(substituted(*layer, arguments));
    }
    previous = inputs.front();
    const auto inner_blocks = static_cast<size_t>(&block - blocks_.data());
    for (int i = 0; i < repeat; ++i) {
      const std::string copy = map.has("repeat") ? name + "." + std::to_string(first + i) : name;
      std::vector<std::string> inner = scopes;
      inner.insert(inner.begin(), copy + ".");
      previous = place(layers, inner, previous, inner_blocks);
      record_output(copy, previous, node.where);
    }
    if (first > 0) {
      placed_.outputs[name] = previous.candidates.front();
    } else if (map.has("repeat")) {
      record_output(name, previous, node.where);
    }
    return previous;
  }

  void record_output(const std::string& name, const LayerReference& output, const Where& where) {
    if (!placed_.outputs.emplace(name, output.candidates.front()).second) {
      throw InputError(where, "duplicate name '" + name + "'; allowed: each name once");
    }
  }

  std::vector<Block> blocks_; ///< in the order of the file; each may use those before it
  PlacedLayers placed_;
};

} // namespace

PlacedLayers expand_blocks(const yaml::Node* blocks, const yaml::Node& document_layers) {
  Expander expander;
  if (blocks != nullptr) {
    for (const yaml::Node& block : blocks->items) {
      expander.define(block);
    }
  }
  const LayerReference input{{std::string(kModelInputName)}, document_layers.where};
  expander.place(document_layers.items, {""}, input, expander.blocks());
  return expander.take();
}

} // namespace stagecraft
