// The costs that Piper's dynamic program uses: those of a model and of the devices that it plans for (Tarnawski et al.
// 2021).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>
#include <vector>

#include "sim/plan/plan_request.hpp"
#include "sim/strategy/dynamic_programming/antichains.hpp"

namespace stagecraft {

/// The ways to run each operator at one tensor degree: at most one without recompute and one with.
struct PiperDegree {
  int degree = 1;
  std::vector<std::vector<Configuration>> options; ///< [operator]; none where it cannot run so
  std::vector<double> forward;                     ///< [operator], seconds; only where not given
};

/// Equal devices, as Piper takes them: of several types each operator has its slowest time, and memory is the least.
struct PiperInstance {
  const Problem& problem;
  std::vector<DeviceId> devices;
  std::vector<PiperDegree> degrees; ///< ascending
  double memory = 0;                ///< bytes of each device
  double seconds_per_byte = 0;      ///< over the slowest pair of devices
  /// As in Piper's own files: a replica takes every d-th micro-batch whole, each edge is paid for, and the in-flight
  /// count is ceil(s / d) with s the replicas of this stage and all later ones. Otherwise a replica takes 1/d of each
  /// micro-batch, tensors are paid for once a stage, buffers count, and the count is the schedule's, s being the number
  /// of stages from here on.
  bool given = false;
  std::vector<double> in_flight; ///< [s], of whole micro-batches; where not given

  int step(int replicas) const { return given ? replicas : 1; }
  /// Micro-batches, in whole ones, that a device of a stage holds.
  double held(int s, int replicas) const;
  bool allows_replicas(int replicas) const;
};

/// An instance over these devices, which the request lists among others. Degrees are those of the model's file, or 1,
/// 2, 4 and 8 as far as they divide the devices of every node.
PiperInstance piper_instance(const PlanRequest& request, std::vector<DeviceId> devices);

} // namespace stagecraft
