// The load of a stage as dnn-partitioning counts it (Tarnawski et al. 2020): its time, and each tensor that crosses its
// border, one after the other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/plan/problem.hpp"

namespace stagecraft {

/// Devices on which a stage has the same load: those of one type with equal routes. `route` is the slowest of the
/// routes to and from the other devices, without the link next to the other device if the route has more links (on a
/// star: the device's own link). A processor on a free link pays no communication.
struct LoadGroup {
  int type = 0;
  PathCost route;
  std::vector<DeviceId> devices; ///< in the order of the request
};
std::vector<LoadGroup> load_groups(const Problem& problem, const std::vector<DeviceId>& devices);

/// The tensors that stages exchange: the model's tensors if its file lists them, else each operator's output and its
/// gradient.
struct CrossingTensor {
  std::vector<OperatorId> ends; ///< ascending
  double bytes = 0;             ///< per micro-batch, in both directions if a gradient comes back
  int transfers = 1;            ///< 2 with the gradient: each pays the latency
};
std::vector<CrossingTensor> crossing_tensors(const Problem& problem);

/// Seconds of forward and backward of the operators in `inside`, and of every tensor with ends inside and outside,
/// which counts once.
double stage_load(const Problem& problem, const LoadGroup& group, const std::vector<CrossingTensor>& tensors,
                  const std::vector<char>& inside);

} // namespace stagecraft
