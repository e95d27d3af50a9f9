// The costs that Piper's dynamic program uses: those of a model and of the devices that it plans for (Tarnawski et al.
// 2021).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>
#include <vector>

#include "sim/plan/estimate/plan_request.hpp"
#include "sim/strategy/dynamic_programming/antichains.hpp"

namespace stagecraft {

/// The ways to run each operator at one tensor degree: at most one without recompute and one with.
struct PiperDegree {
  int degree = 1;
  std::vector<std::vector<Configuration>> options; ///< [operator]; empty if it cannot run at this degree
  std::vector<double> forward;                     ///< [operator], seconds; only if not `given`
};

/// Equal devices, as Piper assumes them: among several types each operator takes its slowest time, and memory is the
/// smallest.
struct PiperInstance {
  const Problem& problem;
  std::vector<DeviceId> devices;
  std::vector<PiperDegree> degrees; ///< ascending
  double memory = 0;                ///< bytes of each device
  double seconds_per_byte = 0;      ///< over the slowest pair of devices
  /// As in Piper's own files: a replica takes every d-th micro-batch whole, each edge is paid for, and the in-flight
  /// count is ceil(s / d), where s is the number of replicas of this stage and all later ones. Otherwise a replica
  /// takes 1/d of each micro-batch, tensors are paid for once per stage, buffers count, and the in-flight count is the
  /// schedule's, where s is the number of stages from here on.
  bool given = false;
  std::vector<double> in_flight; ///< [s], in whole micro-batches; only if not `given`

  int step(int replicas) const { return given ? replicas : 1; }
  /// The micro-batches, counted as whole ones, that a device of a stage holds.
  double held(int s, int replicas) const;
  bool allows_replicas(int replicas) const;
};

/// PiperInstance::in_flight of so many devices under the request's schedule.
std::vector<double> piper_in_flight(const PlanRequest& request, int devices);

/// An instance over these devices, which the request lists among others. Degrees are those of the model's file, or 1,
/// 2, 4 and 8 as far as they divide the devices of every node; over groups 1 alone. Of the schedule it holds nothing
/// but `in_flight`.
PiperInstance piper_instance(const PlanRequest& request, std::vector<DeviceId> devices);

} // namespace stagecraft
