// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/estimate/total_memory.hpp"

#include <algorithm>
#include <cmath>

namespace stagecraft {
namespace {

// need = P (weight + gradient + optimizer) + resident, or what the model's file gives as held all the time. A plan has
// each operator in at least one stage, whose devices hold at least one copy, however they share it.
Bytes held_of_one_copy(const Problem& problem) {
  const Prefix& prefix = problem.prefix;
  const Bytes resident{prefix.resident_bytes.back()};
  if (problem.model.memory_given) {
    return resident;
  }
  const ParameterBytes each = parameter_bytes(problem.training);
  return Bytes{prefix.parameters.back() * (each.weight + each.gradient + each.optimizer)} + resident;
}

} // namespace

std::optional<TotalShortage> total_shortage(const Problem& problem, const std::vector<DeviceId>& devices) {
  const Training& training = problem.training;
  if (training.parallel || training.sharding.on() || training.offload.on()) {
    return std::nullopt;
  }
  TotalShortage total{.need = held_of_one_copy(problem), .have = {}, .largest = {}, .devices = devices.size()};
  for (const DeviceId device : devices) {
    const Bytes memory = problem.platform.types[static_cast<std::size_t>(problem.type_index(device))].memory;
    total.have += memory;
    total.largest = std::max(total.largest, memory);
  }
  constexpr double kRounding = 1e-9;
  return total.need > total.have * (1 + kRounding) ? std::optional(total) : std::nullopt;
}

double TotalShortage::least_devices() const { return std::ceil(need / largest); }

std::string to_text(const TotalShortage& total) {
  return "weights, gradients and optimizer states take " + to_text(total.need) + ", and " +
         (total.devices == 1
              ? "the one device has " + to_text(total.have)
              : "all " + std::to_string(total.devices) + " devices have " + to_text(total.have) + " together") +
         "; allowed: at least " + to_text(total.least_devices(), 0) + " devices of " + to_text(total.largest);
}

} // namespace stagecraft
