// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/witness.hpp"

#include <algorithm>
#include <fstream>
#include <limits>

namespace stagecraft {
namespace {

constexpr int kUnnamed = -1;

Seconds seconds(yaml::Map& map, std::string_view key, const yaml::Range& range) {
  return Seconds{map.number(key, range)};
}

std::optional<Seconds> maybe_seconds(yaml::Map& map, std::string_view key) {
  return map.has(key) ? std::optional(seconds(map, key, yaml::kPositive)) : std::nullopt;
}

std::optional<Bytes> maybe_bytes(yaml::Map& map, std::string_view key) {
  return map.has(key) ? std::optional(Bytes{map.number(key, yaml::kPositive)}) : std::nullopt;
}

WitnessWay read_way(const yaml::Node& node, const WitnessWayRow& row) {
  yaml::Map map(node, std::string(row.name));
  WitnessWay way{.row = &row};
  if (const yaml::Node* framework = map.find("framework")) {
    yaml::scalar(*framework, "framework");
    way.framework = *framework;
  }
  way.step = maybe_seconds(map, "step_seconds");
  way.loop = maybe_seconds(map, "loop_seconds");
  way.host = maybe_seconds(map, "host_seconds");
  way.kernel_time = maybe_seconds(map, "kernel_seconds");
  way.peak = maybe_bytes(map, "peak_bytes");
  way.reserved = maybe_bytes(map, "reserved_bytes");
  way.outside = maybe_bytes(map, "outside_bytes");
  if (map.has("kernels")) {
    way.kernels = map.number("kernels", yaml::kPositive);
  }
  for (const char* key : {"spread", "device_seconds", "first_step_seconds", "launches"}) { // for readers of the file
    map.number(key, yaml::kNotNegative, 0);
  }
  map.finish();
  return way;
}

WitnessLayer read_layer(const yaml::Node& node) {
  yaml::Map map(node, "layer");
  WitnessLayer layer;
  layer.name = map.text("name");
  layer.kind = map.text("kind");
  layer.forward = seconds(map, "forward_seconds", yaml::kNotNegative);
  layer.backward = seconds(map, "backward_seconds", yaml::kNotNegative);
  layer.where = map.where("name");
  map.finish();
  return layer;
}

bool is_of_kind(const Operator& op, const std::string& kind) { return op.type == kind || row_of(op.kind).name == kind; }

OperatorId find_operator(const ModelGraph& model, const std::string& name) {
  const auto found =
      std::find_if(model.operators.begin(), model.operators.end(), [&](const Operator& op) { return op.name == name; });
  return found == model.operators.end() ? kUnnamed : static_cast<OperatorId>(found - model.operators.begin());
}

// The next operator of the layer's kind after `before`, skipping those that a layer names.
OperatorId next_of_kind(const WitnessLayer& layer, const ModelGraph& model, OperatorId before,
                        const std::vector<OperatorId>& named) {
  for (OperatorId op = before + 1; op < model.size(); ++op) {
    if (is_of_kind(model.operators[op], layer.kind) && std::find(named.begin(), named.end(), op) == named.end()) {
      return op;
    }
  }
  const std::string behind = before == kUnnamed ? "" : " behind '" + model.operators[before].name + "'";
  throw InputError(layer.where, "layer '" + layer.name + "' of kind '" + layer.kind + "' matches no operator of '" +
                                    model.name +
                                    "'; allowed: the name of an operator, or the kind of one that no layer names" +
                                    behind + ", as `stagecraft show` lists them");
}

} // namespace

bool is_witness_file(const std::filesystem::path& path) {
  std::error_code failure;
  const bool named_so = yaml::is_named_yaml(path) || path.extension() == ".json";
  if (!named_so || !std::filesystem::is_regular_file(path, failure)) {
    return false;
  }
  constexpr std::size_t kHead = 1000;
  std::string head(kHead, '\0');
  std::ifstream(path).read(head.data(), kHead);
  return head.starts_with("witness:") || head.find("\nwitness:") != std::string::npos ||
         head.find("\"witness\"") != std::string::npos;
}

Witness read_witness(const yaml::Node& document) {
  yaml::Map map(document, "witness");
  Witness witness;
  witness.software = map.text("witness");
  witness.model = map.node("model");
  witness.device = map.node("device");
  yaml::scalar(witness.device, "device");
  constexpr int kMostSamples = 1'000'000'000;
  witness.batch = map.integer("batch", 1, kMostSamples);
  witness.precision = &map.choice("precision", kPrecisions);
  witness.optimizer = &map.choice("optimizer", kOptimizers);
  for (const WitnessWayRow& row : kWitnessWays) {
    if (const yaml::Node* way = map.find(row.name)) {
      witness.ways.push_back(read_way(*way, row));
    }
  }
  for (const yaml::Node* layer : map.list("layers")) {
    witness.layers.push_back(read_layer(*layer));
  }
  map.finish();
  return witness;
}

std::vector<OperatorId> match_layers(const std::vector<WitnessLayer>& layers, const ModelGraph& model) {
  std::vector<OperatorId> named;
  for (const WitnessLayer& layer : layers) {
    named.push_back(find_operator(model, layer.name));
  }
  std::vector<OperatorId> matched = named;
  OperatorId before = kUnnamed;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (named[i] == kUnnamed) {
      matched[i] = next_of_kind(layers[i], model, before, named);
    } else if (const Operator& op = model.operators[named[i]]; !is_of_kind(op, layers[i].kind)) {
      throw InputError(layers[i].where, "layer '" + op.name + "' is of kind '" + layers[i].kind +
                                            "', and the operator of '" + model.name + "' is not; allowed: " + op.type +
                                            ", " + std::string(row_of(op.kind).name));
    }
    before = matched[i];
  }
  return matched;
}

} // namespace stagecraft
