// How the replicas of a stage share the samples of a micro-batch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/plan/estimate/plan_request.hpp"

namespace stagecraft {

/// Shares in proportion to `speeds`, adding up to 1. Whole samples: each gets floor(samples * speed / sum), and the
/// remaining samples go one by one to the largest fractions, on ties to the lower index. A share may be 0.
std::vector<double> shares_by_speed(const Problem& problem, std::vector<double> speeds);

/// Whether this many replicas can share a micro-batch equally, in whole samples if samples are not divisible.
bool divides_samples(const Problem& problem, int replicas);

/// The devices of a request that have all kernels of the model. `lacks` says what the last of the other devices lacks.
struct AbleDevices {
  std::vector<DeviceId> devices;
  std::string lacks;
};
AbleDevices able_devices(const PlanRequest& request);

/// The largest memory of these devices.
Bytes most_memory(const Platform& platform, const std::vector<DeviceId>& devices);

/// A stage of these operators on these devices, with shares in proportion to their speed on it, multiplied by `weights`
/// if these are given. Devices that would get no sample are left out. All devices must have the kernels.
Stage make_replicated_stage(const Problem& problem, std::vector<OperatorId> operators,
                            std::span<const DeviceId> devices, std::span<const double> weights = {});

} // namespace stagecraft
