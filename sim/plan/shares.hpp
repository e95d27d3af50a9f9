// How replicas of a stage share the samples of a micro-batch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/plan/plan_request.hpp"

namespace stagecraft {

/// A part for each of `speeds`, in proportion to them and adding up to 1. Of whole samples each gets
/// floor(samples * speed / sum); those left go one by one to the largest fractions, ties to the lower index. A part may
/// be 0.
std::vector<double> shares_by_speed(const Problem& problem, std::vector<double> speeds);

/// Whether so many replicas can share a micro-batch equally, in whole samples where these are not divisible.
bool divides_samples(const Problem& problem, int replicas);

/// The request's devices that have every kernel of the model, and what the last of the others lacks.
struct AbleDevices {
  std::vector<DeviceId> devices;
  std::string lacks;
};
AbleDevices able_devices(const PlanRequest& request);

/// The most that one of these devices has.
Bytes most_memory(const Platform& platform, const std::vector<DeviceId>& devices);

/// A stage of these operators on these devices, in proportion to their speed on it, each taken to be `weights` times as
/// fast as its costs say where weights are given; devices left without a sample are left out. All must have the
/// kernels.
Stage make_replicated_stage(const Problem& problem, std::vector<OperatorId> operators,
                            std::span<const DeviceId> devices, std::span<const double> weights = {});

} // namespace stagecraft
