// Shared by strategies that place operators one by one: ranks, memory, and the plan that a placement becomes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/plan/estimate/plan_request.hpp"

namespace stagecraft {

/// r(v) = seconds_v + max over successors u of (transfer(v, u) + r(u)); tasks are numbered topologically (Topcuoglu,
/// Hariri, Wu 2002).
std::vector<double> upward_ranks(const std::vector<std::vector<int>>& successors, std::span<const double> seconds,
                                 const std::function<double(int from, int to)>& transfer);

/// Topological order, largest rank first among those ready; ranks within 1e-9 of each other are equal, and of those the
/// lowest number comes first.
std::vector<int> order_by_rank(const std::vector<std::vector<int>>& successors, std::span<const double> ranks);

/// Mean over devices of an operator's forward + backward time, without the devices that lack its kernel; 0 if all do.
std::vector<double> mean_seconds(const PlanRequest& request);

/// Forward + backward time of a share of a micro-batch, and forward again if the training recomputes the operator;
/// infinite without the kernel.
double share_seconds(const Problem& problem, int type, OperatorId op, double share);

/// Mean over ordered pairs of the request's devices.
PathCost mean_path(const PlanRequest& request);

/// The memory that an operator adds to its device: weights, gradients, optimiser, and the activations of `held`
/// micro-batches.
Bytes placed_bytes(const PlanRequest& request, OperatorId op, double held);

/// Why no device takes `op`: names the device that lacks least memory among those from `lowest` on that have its
/// kernel, where device d would need `need[d]`.
std::string why_no_device(const PlanRequest& request, OperatorId op, int lowest, std::span<const Bytes> need);

/// A convex set of operators that have one place.
struct Segment {
  int place = 0;
  std::vector<OperatorId> operators; ///< ascending
};

/// A placement as segments in topological order; operators with place -1 are left out. If data never returns to a place
/// that it left, each place is one segment.
std::vector<Segment> convex_segments(const ModelGraph& model, std::span<const int> place);

/// The plan of a placement. place[op] is an index into `places`, and each place is a list of indices into the request's
/// devices. The plan is cut into convex segments: the level of an operator is the largest number of changes of place on
/// a path to it, so operators of one place and level form a convex set, and levels order the segments. The devices of
/// one place become replicas, with shares in proportion to their speed on the stage, where device d counts as
/// weights[d] times as fast as its costs say.
Plan make_segment_plan(const PlanRequest& request, std::span<const int> place, std::span<const std::vector<int>> places,
                       std::span<const double> weights);
/// The same, but place[op] is an index into the request's devices.
Plan make_segment_plan(const PlanRequest& request, std::span<const int> place);

} // namespace stagecraft
