// The load of a stage as dnn-partitioning counts it (Tarnawski et al. 2020): its time, and each tensor that crosses its
// border, one after the other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/plan/estimate/plan_request.hpp"
#include "sim/strategy/dynamic_programming/antichains.hpp"

namespace stagecraft {

/// The most ideals of a search over all, counting the empty one, as in the original.
inline constexpr int kMostIdeals = 60'000;

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

/// A chain of stages, each the difference of two ideals.
struct LoadSplit {
  Plan plan;
  double max_load = 0; ///< s per micro-batch
};

/// The result of a search, or why there is none ("": nothing as good as was asked for).
struct LoadResult {
  std::optional<LoadSplit> split;
  std::string why_not;
};

/// The split along `ideals` (ascending in size, from the empty one to all operators) with the least max-load below
/// `below`. Devices of a group are counted, not told apart, and any may stay unused; each stage fits in memory. Cost:
/// pairs of ideals * product over groups of (devices + 1). Most pairs drop out: their time alone is no better than the
/// best known, or the devices left could not do the rest in that time.
LoadResult least_max_load(const PlanRequest& request, const BitRows& ideals, double below);

/// Kahn's order with a stack: whatever became ready last comes next, so that branches follow one another as a whole.
std::vector<OperatorId> depth_first_order(const ModelGraph& model);

} // namespace stagecraft
