// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/plan.hpp"

#include <algorithm>
#include <utility>

namespace stagecraft {

std::vector<DeviceId> devices_of(const Plan& plan) {
  std::vector<DeviceId> devices;
  std::vector<char> seen;
  for (const Stage& stage : plan.stages) {
    for (const DeviceId device : stage.devices) {
      const auto at = static_cast<std::size_t>(device);
      seen.resize(std::max(seen.size(), at + 1), 0);
      if (std::exchange(seen[at], char{1}) == 0) {
        devices.push_back(device);
      }
    }
  }
  return devices;
}

std::vector<DeviceId> place_stages(const std::vector<DeviceId>& devices, int chunks, StagePlacement placement) {
  const auto ranks = static_cast<int>(devices.size());
  std::vector<DeviceId> placed;
  for (int stage = 0; stage < ranks * chunks; ++stage) {
    placed.push_back(devices[rank_of(stage, ranks, placement)]);
  }
  return placed;
}

bool is_pipeline(const Plan& plan, int chunks, StagePlacement placement) {
  const std::size_t stages = plan.stages.size();
  if (stages == 0 || stages % chunks != 0) {
    return false;
  }
  const std::size_t ranks = stages / chunks;
  std::size_t devices = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    if (plan.stages[s].devices !=
        plan.stages[rank_of(static_cast<int>(s), static_cast<int>(ranks), placement)].devices) {
      return false;
    }
    devices += s < ranks ? plan.stages[s].devices.size() : 0;
  }
  return devices_of(plan).size() == devices;
}

} // namespace stagecraft
