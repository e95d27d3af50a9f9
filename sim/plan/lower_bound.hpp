// Bounds that no plan's iteration time can fall below. Proofs in docs/model.md, "A bound that nothing beats".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/plan/problem.hpp"

namespace stagecraft {

/// Least times of one micro-batch by device type and operator, seconds; infinite without the kernel. "Least" is over
/// sizes: b min t(b')/b' over b' <= b, which no share of the micro-batch can undercut per sample.
struct LeastTimes {
  std::vector<int> devices;                                      ///< [type]: how many may be used
  std::vector<std::vector<double>> forward, backward_input, all; ///< [type][operator]; all: with weight gradients
};
LeastTimes least_times(const Problem& problem, const std::vector<DeviceId>& devices);

/// All work shared by all devices, none beyond its memory: the dual of a linear program, any weights y (sum over
/// devices 1) and prices p >= 0 of it, improved in a fixed number of steps. Holds for a period too.
Seconds work_bound(const Problem& problem, const LeastTimes& times);

/// From the first forward to the last backward along the worst path, for one micro-batch. Holds where an iteration
/// starts from empty.
Seconds path_bound(const Problem& problem, const LeastTimes& times);

/// The most that an operator asks of the one device it is on, where it may not be replicated; with the path to it and
/// back where an iteration starts from empty.
Seconds indivisible_bound(const Problem& problem, const LeastTimes& times, bool from_empty);

/// One device does all, or all that are used hold the whole model and reduce its gradients, or a tensor crosses and its
/// gradient comes back: the least of the three. 0 where the model's graph is not connected. Holds where an iteration
/// starts from empty.
Seconds communication_bound(const Problem& problem, const LeastTimes& times, const std::vector<DeviceId>& devices);

/// The largest of these: a bound on the iteration time of any plan on these devices under any schedule, with the
/// problem's number of micro-batches. `from_empty`: an iteration starts when the one before has ended (`training.step:
/// barrier`), so that its makespan is its period.
Seconds lower_bound(const Problem& problem, const std::vector<DeviceId>& devices, bool from_empty);

/// A bound for plans whose kernels run on several streams, where they overlap but each resource of a device does its
/// part one after the other: work_bound() of the arithmetic alone, or of the memory bandwidth alone, launches aside.
Seconds lower_bound_of_streams(const Problem& problem, const std::vector<DeviceId>& devices);

} // namespace stagecraft
