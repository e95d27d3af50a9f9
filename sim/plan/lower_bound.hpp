// Bounds that no plan's iteration time can fall below. Proofs in docs/model.md, "A bound that nothing beats".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/plan/problem.hpp"

namespace stagecraft {

/// The least time of one micro-batch for each device type and operator, in device seconds; infinite if the type lacks
/// the kernel. For b samples it is b times a lower bound of degree * t(b')/b' over b' <= b and tensor degrees, so that
/// no share of the micro-batch on no group of devices takes less time per sample (CostModel::least_time).
struct LeastTimes {
  std::vector<int> devices;                                      ///< [type]: how many may be used
  std::vector<std::vector<double>> forward, backward_input, all; ///< [type][operator]; all: with weight gradients
};
LeastTimes least_times(const Problem& problem, const std::vector<DeviceId>& devices);

/// Bound from the total work: all devices share it, and none exceeds its memory. The value is that of the linear
/// program's dual: any weights y (adding up to 1 over the devices) and prices p >= 0 give a valid bound, and a fixed
/// number of steps improves them. Also bounds the period of the steady state.
Seconds work_bound(const Problem& problem, const LeastTimes& times);

/// The time of one micro-batch from its first forward to its last backward along the longest path. Valid if an
/// iteration starts from an empty pipeline.
Seconds path_bound(const Problem& problem, const LeastTimes& times);

/// The most work that an operator which may not be replicated puts on its one device; if an iteration starts from an
/// empty pipeline, with the path to the operator and back.
Seconds indivisible_bound(const Problem& problem, const LeastTimes& times, bool from_empty);

/// The least of three times, since every plan is one of three cases: one device does all the work, or all devices in
/// use hold the whole model and reduce its gradients, or a tensor crosses between devices and its gradient comes back.
/// 0 if the model's graph is not connected. Valid if an iteration starts from an empty pipeline.
Seconds communication_bound(const Problem& problem, const LeastTimes& times, const std::vector<DeviceId>& devices);

/// The largest of these: a bound on the iteration time of any plan on these devices under any schedule, with the
/// problem's number of micro-batches. `from_empty`: an iteration starts when the one before has ended (`training.step:
/// barrier`), so that its makespan is its period.
Seconds lower_bound(const Problem& problem, const std::vector<DeviceId>& devices, bool from_empty);

/// A bound for plans whose kernels run on at most `streams` streams of a device. Kernels then overlap, but each
/// resource of a device serves them one after the other, and so does each stream: the bound is the largest work_bound()
/// of three, for arithmetic alone, for memory bandwidth alone, both without launches, and for all time shared by the
/// streams.
Seconds lower_bound_of_streams(const Problem& problem, const std::vector<DeviceId>& devices, int streams);

} // namespace stagecraft
