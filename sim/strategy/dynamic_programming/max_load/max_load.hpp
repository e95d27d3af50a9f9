// The chain of stages with the least max-load, along given ideals (Tarnawski et al. 2020).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/plan/estimate/plan_request.hpp"
#include "sim/strategy/dynamic_programming/antichains.hpp"
#include "sim/strategy/dynamic_programming/max_load/stage_load.hpp"

namespace stagecraft {

/// The most ideals of a search over all, counting the empty one, as in the original.
inline constexpr int kMostIdeals = 60'000;

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
