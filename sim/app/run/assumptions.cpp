// SPDX-License-Identifier: Apache-2.0
#include "sim/app/run/assumptions.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "sim/cost/memory.hpp"
#include "sim/workload/blocks.hpp"
#include "sim/workload/model_flops.hpp"

namespace stagecraft {
namespace {

// Whether the user says the value at the key, one below it or one above it.
bool is_given(const std::vector<Setting>& given, const std::string& key) {
  return std::any_of(given.begin(), given.end(), [&](const Setting& setting) {
    return setting.key == key || key.starts_with(setting.key + ".") || setting.key.starts_with(key + ".");
  });
}

const char* precision_on(const Platform& platform) {
  const auto all_have = [&](Precision precision) {
    return std::all_of(platform.types.begin(), platform.types.end(),
                       [&](const DeviceType& type) { return type.rate(KernelKind::matmul, precision).has_value(); });
  };
  return all_have(Precision::bf16) ? "bf16" : all_have(Precision::fp16) ? "fp16" : "fp32";
}

// The least memory of a device.
Bytes memory_of(const Platform& platform) {
  Bytes memory{std::numeric_limits<double>::infinity()};
  for (const DeviceType& type : platform.types) {
    memory = std::min(memory, type.memory);
  }
  return memory;
}

// Parameters and what comes with them in 16 bits with Adam: a part that each device of a replica has its share of, and
// the optimiser's, which replicas may share too.
ParameterBytes bytes_of_adam() {
  Training training;
  training.precision = Precision::bf16;
  training.optimizer = &find_by_name(kOptimizers, "adam", "optimizer", {});
  return parameter_bytes(training);
}

// Whether a pipeline over all devices, which has a micro-batch of one sample in flight for each of them, has memory to
// keep what their backwards need.
bool keeps_activations(const ModelGraph& model, const Platform& platform) {
  constexpr double kShare = 0.8; // stages are not equal
  const ParameterBytes bytes = bytes_of_adam();
  const ModelTotals totals = totals_of(model);
  const double states = totals.parameters * (bytes.weight + bytes.gradient + bytes.optimizer);
  const double kept = totals.stash_elements * row_of(Precision::bf16).bytes;
  return states / static_cast<double>(platform.devices.size()) + kept <= kShare * memory_of(platform).value;
}

struct Degrees {
  int tensor = 1, pipeline = 1;
};

// The fewest devices for one replica, first within a node and then as a pipeline of nodes, on which parameters and
// what comes with them take at most a share of the memory that leaves room for activations (the order is that of
// Narayanan et al. 2021, sec. 3). The optimiser's states are shared by the replicas (ZeRO 1).
Degrees degrees_for(const ModelGraph& model, const Platform& platform) {
  constexpr double kShare = 0.6;
  constexpr int kMostTensor = 8;
  const auto devices = static_cast<int>(platform.devices.size());
  const auto layers = static_cast<int>(layer_row_of(model).layers.size());
  std::map<int, int> per_node;
  for (const Device& device : platform.devices) {
    ++per_node[device.node];
  }
  int node = devices;
  for (const auto& [id, count] : per_node) {
    node = std::gcd(node, count);
  }
  const double memory = memory_of(platform).value;
  const ParameterBytes bytes = bytes_of_adam();
  const double parameters = totals_of(model).parameters;
  Degrees best;
  for (int tensor = 1, pipeline = 1;;) {
    best = {tensor, pipeline};
    const double replicas = static_cast<double>(devices) / (tensor * pipeline);
    const double each = parameters / (tensor * pipeline) * (bytes.weight + bytes.gradient + bytes.optimizer / replicas);
    if (each <= kShare * memory) {
      return best;
    }
    if (tensor * 2 <= kMostTensor && node % (tensor * 2) == 0) {
      tensor *= 2;
    } else if (devices % (tensor * pipeline * 2) == 0 && pipeline * 2 <= layers) {
      pipeline *= 2;
    } else {
      return best;
    }
  }
}

// The least common multiple of the numbers of micro-batches that the user gives, "8" or "[8, 16]"; 1 where there are
// none.
int micro_batches_in(const std::vector<Setting>& given) {
  constexpr int kMost = 1 << 24;
  int multiple = 1;
  for (const Setting& setting : given) {
    for (std::size_t at = 0; setting.key == "training.micro_batches" && at < setting.value.size();) {
      const std::size_t end = std::min(setting.value.find_first_not_of("0123456789", at), setting.value.size());
      const int count = end > at ? std::atoi(setting.value.substr(at, std::min<std::size_t>(end - at, 8)).c_str()) : 1;
      multiple = count > 0 && multiple <= kMost / count ? std::lcm(multiple, count) : multiple;
      at = std::max(end, at + 1);
    }
  }
  return multiple;
}

} // namespace

std::vector<Setting> assumptions_for(const ModelGraph& model, const Platform& platform,
                                     const std::vector<Setting>& given) {
  if (!model.profiles.empty() || !model.configurations.empty() || model.memory_given ||
      is_given(given, "training.config") || is_given(given, "training.framework")) {
    return {};
  }
  constexpr int kFewDevices = 16;
  const auto devices = static_cast<int>(platform.devices.size());
  const bool of_tokens = tokens_of(model) > 0;
  const bool of_layers = !layer_row_of(model).layers.empty();
  const bool large = devices > kFewDevices && of_layers;
  // A sequence is a sample: four for each device, and enough of them that a pipeline is filled.
  int batch = of_tokens ? std::max(64, 4 * devices) : 32 * devices;
  std::vector<Setting> assumed;
  bool long_pipeline = false; // dapple takes minutes
  if (large) {
    constexpr int kShort = 8;
    const Degrees degrees = degrees_for(model, platform);
    long_pipeline = degrees.pipeline > kShort;
    const int replicas = devices / (degrees.tensor * degrees.pipeline);
    batch = replicas * (degrees.pipeline > 1 ? 32 : degrees.tensor > 1 ? 16 : 4);
    assumed.push_back({"training.parallel", "{tensor: " + std::to_string(degrees.tensor) +
                                                ", pipeline: " + std::to_string(degrees.pipeline) + ", zero: 1}"});
  }
  const int multiple = micro_batches_in(given);
  batch = (batch + multiple - 1) / multiple * multiple;
  assumed.insert(assumed.begin(), {{"training.global_batch", std::to_string(batch)},
                                   {"training.optimizer", "adam"},
                                   {"training.precision", precision_on(platform)}});
  const bool recomputes = !large && of_layers && !keeps_activations(model, platform);
  if (recomputes || large) {
    assumed.push_back({"training.recompute", large ? "[none, blocks]" : "blocks"});
  }
  const bool by_degrees = large || is_given(given, "training.parallel");
  assumed.push_back({"compare.strategies", by_degrees && long_pipeline ? "[mesh, uniform, optimal]"
                                           : by_degrees                ? "[mesh, uniform, optimal, dapple]"
                                           : recomputes
                                               ? "[data-parallel, uniform, capability, piper, amp]"
                                               : "[data-parallel, uniform, capability, optimal, dapple, piper, amp]"});
  assumed.push_back({"compare.schedules", "[gpipe, 1f1b, interleaved, zb-h1, zb-v]"});
  std::erase_if(assumed, [&](const Setting& setting) { return is_given(given, setting.key); });
  return assumed;
}

std::string in_words(const std::vector<Setting>& assumptions) {
  std::vector<std::string> texts;
  for (const Setting& setting : assumptions) {
    texts.push_back(setting.key + "=" + setting.value);
  }
  return join(texts, ", ");
}

} // namespace stagecraft
