// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/sailor_data.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/format/csv.hpp"
#include "sim/base/system/file.hpp"
#include "sim/base/utf8.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLayers = 10'000, kMostDevices = 1024, kMostSamples = 1 << 24;
constexpr double kGiga = 1e9, kMega = 1e6;
constexpr yaml::Range kAmount{0, 1e15, true, "0 to 1e15"};

const yaml::Node& value_at(const yaml::Node& map, const std::string& key, const std::string& what) {
  const yaml::Node* found = map.find(key);
  if (found == nullptr) {
    std::string known;
    for (const yaml::Node::Entry& entry : map.entries) {
      known += (known.empty() ? "" : ", ") + entry.key;
    }
    throw InputError(map.where, "no " + what + " '" + excerpt(key) + "'; there are: " + excerpt(known));
  }
  return *found;
}

// The items of a list, of so many where `count` is not 0.
const std::vector<yaml::Node>& items_of(const yaml::Node& node, const std::string& what, std::size_t count = 0) {
  const bool is_right = node.kind == yaml::Node::Kind::sequence && !node.items.empty();
  if (!is_right || (count > 0 && node.items.size() != count)) {
    throw InputError(node.where, what + " must be a list of " +
                                     (count > 0 ? std::to_string(count) : std::string("one or more")) + " values");
  }
  return node.items;
}

// Layers of one stage: in a row.
SailorStage stage_of(const yaml::Node& layers) {
  SailorStage stage;
  int next = -1;
  for (const yaml::Node& item : items_of(layers, "a stage of layers_per_stage")) {
    const int layer = yaml::integer(item, "layer", 0, kMostLayers);
    if (next >= 0 && layer != next) {
      throw InputError(item.where, "layer " + std::to_string(layer) +
                                       " does not follow the one before; allowed: " + std::to_string(next));
    }
    stage.first = next < 0 ? layer : stage.first;
    stage.last = layer;
    next = layer + 1;
  }
  return stage;
}

// [[[gpu, count, zone]], degree]
SailorGroup group_of(const yaml::Node& node) {
  const std::vector<yaml::Node>& pair = items_of(node, "a replica of tmp_per_stage", 2);
  const std::vector<yaml::Node>& machine =
      items_of(items_of(pair[0], "the machines of a replica", 1)[0], "a machine", 3);
  SailorGroup group{yaml::scalar(machine[0], "the GPU of a machine"),
                    yaml::integer(pair[1], "the tensor degree of a replica", 1, kMostDevices)};
  if (const int count = yaml::integer(machine[1], "the GPUs of a machine", 1, kMostDevices); count != group.devices) {
    throw InputError(machine[1].where, "a replica of " + std::to_string(count) + " GPUs has tensor degree " +
                                           std::to_string(group.devices) + "; allowed: as many as GPUs");
  }
  return group;
}

void read_stages(yaml::Map& pipeline, SailorPlan& plan) {
  const yaml::Node& layers = pipeline.node("layers_per_stage");
  const yaml::Node& groups = pipeline.node("tmp_per_stage");
  const auto count = static_cast<std::size_t>(pipeline.integer("num_stages", 1, kMostDevices));
  items_of(layers, "layers_per_stage", count);
  items_of(groups, "tmp_per_stage", count);
  int next = 0;
  for (std::size_t s = 0; s < count; ++s) {
    SailorStage stage = stage_of(layers.items[s]);
    if (stage.first != next) {
      throw InputError(layers.items[s].where, "a stage begins with layer " + std::to_string(stage.first) +
                                                  "; allowed: " + std::to_string(next));
    }
    next = stage.last + 1;
    for (const yaml::Node& replica : items_of(groups.items[s], "a stage of tmp_per_stage")) {
      stage.replicas.push_back(group_of(replica));
    }
    plan.stages.push_back(std::move(stage));
  }
  pipeline.find("dp");
}

SailorPlan read_plan(const fs::path& path) {
  const yaml::Node document = yaml::load(path);
  yaml::Map map(document, "plan");
  SailorPlan plan{.where = document.where};
  plan.micro_batch = map.integer("mbs", 1, kMostSamples);
  plan.global_batch = map.integer("gbs", 1, kMostSamples);
  plan.iteration = Seconds{map.number("real", yaml::kPositive)};
  plan.peak_memory = Bytes{map.number("max_mem", yaml::kPositive)};
  yaml::Map pipeline(items_of(map.node("pipeline_list"), "pipeline_list", 1)[0], "pipeline");
  read_stages(pipeline, plan);
  return plan;
}

SailorNetwork network_of(const yaml::Node& node) {
  const std::vector<yaml::Node>& fit = items_of(node, "a network", 2);
  const std::vector<yaml::Node>& terms = items_of(fit[0], "the terms of a network", 3);
  const auto term = [&](std::size_t at) { return yaml::number(terms[at], "a term of a network", {}); };
  return {term(0), term(1), term(2), BytesPerSecond{yaml::number(fit[1], "the most of a network", yaml::kPositive)},
          node.where};
}

// In the order of their numbers, which must be 0, 1, 2 and so on.
std::vector<const yaml::Node*> layers_of(const yaml::Node& map, const SailorPlan& plan) {
  std::vector<const yaml::Node*> layers;
  const int count = plan.stages.back().last + 1;
  for (int layer = 0; layer < count; ++layer) {
    layers.push_back(&value_at(map, std::to_string(layer), "layer"));
  }
  if (map.entries.size() != layers.size()) {
    throw InputError(map.where, std::to_string(map.entries.size()) + " layers, of which the plan " + plan.case_name +
                                    " has " + std::to_string(count));
  }
  return layers;
}

} // namespace

Seconds SailorNetwork::time(Bytes message) const {
  const double y = std::log2(message.value / kMega);
  const double rate = std::min(kGiga * (square * y * y + linear * y + constant), most.value);
  if (!(rate > 0)) {
    throw InputError(where, "this network has no bandwidth left for a message of " + to_text(message));
  }
  return message / BytesPerSecond{rate};
}

std::vector<SailorPlan> SailorData::plans() const {
  const fs::path index = folder_ / "measured_summary.csv";
  const CsvTable table(read_file(index.string()), index.string(), {"file", "model"});
  std::vector<SailorPlan> plans;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const CsvCell& name = table.at(row, "file");
    const fs::path file = fs::path(name.text).lexically_normal();
    if (file.empty() || file.is_absolute() || *file.begin() == "..") {
      throw InputError(name.where, "'" + excerpt(name.text) + "' is no file below validation");
    }
    plans.push_back(read_plan(folder_ / "validation" / file));
    plans.back().case_name = name.text;
    plans.back().cluster = file.begin()->string();
    plans.back().model = table.at(row, "model").text;
    plans.back().where = name.where;
  }
  return plans;
}

const yaml::Node& SailorData::file(const fs::path& name) {
  const auto [place, is_new] = files_.try_emplace(name.string());
  if (is_new) {
    place->second = yaml::load(folder_ / name);
  }
  return place->second;
}

std::vector<SailorTimes> SailorData::times(const SailorPlan& plan, const SailorGroup& group) {
  const yaml::Node& of_model = value_at(file("profiles_simulator.json"), plan.model, "model");
  const yaml::Node& of_gpu = value_at(of_model, group.gpu, "GPU");
  const yaml::Node& of_size = value_at(of_gpu, std::to_string(plan.micro_batch), "micro-batch");
  std::vector<SailorTimes> times;
  for (const yaml::Node* layer : layers_of(value_at(of_size, std::to_string(group.devices), "tensor degree"), plan)) {
    const std::vector<yaml::Node>& three = items_of(*layer, "a layer's times", 3);
    const auto seconds = [&](std::size_t at) {
      return Seconds{yaml::number(three[at], "a layer's time", yaml::kDelay)};
    };
    times.push_back({seconds(0), seconds(1), seconds(2)});
  }
  return times;
}

std::vector<SailorAmounts> SailorData::amounts(const SailorPlan& plan, int devices) {
  const yaml::Node& model = value_at(file("llm_info.json"), plan.model, "model");
  std::vector<SailorAmounts> amounts;
  const yaml::Node& of_degree = value_at(model, std::to_string(devices), "tensor degree");
  for (const yaml::Node* layer : layers_of(of_degree, plan)) {
    const auto elements = [&](const char* key) { return yaml::number(value_at(*layer, key, "amount"), key, kAmount); };
    amounts.push_back({elements("params_floats"), elements("act_mem_floats"), elements("act_output_floats")});
  }
  return amounts;
}

SailorNetwork SailorData::between_nodes(const SailorGroup& group) {
  const yaml::Node& all = value_at(file("network_coeffs_all_homo.json"), "inter", "kind of network");
  return network_of(value_at(value_at(all, group.gpu, "GPU"), std::to_string(group.devices), "number of GPUs"));
}

SailorNetwork SailorData::within_node(const SailorGroup& group) {
  const yaml::Node& of_gpu = value_at(file("intra_node_bandwidths.json"), group.gpu, "GPU");
  return network_of(value_at(of_gpu, std::to_string(group.devices), "number of GPUs"));
}

} // namespace stagecraft
