// A plan as what colour refinement needs: devices, links, and what connects them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/plan/likeness/likeness.hpp"
#include "sim/plan/stage_cost/stage_costs.hpp"

namespace stagecraft {

/// Two replicas that exchange data, and their flows among those of the likeness.
struct ConnectedPair {
  SharedPart part;
  std::size_t begin = 0, end = 0;
};

/// A plan's replicas as cells, what they send each other, and what they reduce and gather together.
struct PlanLikeness {
  Likeness likeness;
  std::vector<std::size_t> first_cell;           ///< [stage]: that of its first replica; the others follow
  std::vector<std::vector<ConnectedPair>> pairs; ///< [edge of PlanCost]
  std::vector<double> bandwidth;                 ///< [flow]: where nobody else uses its links, B/s
  std::vector<std::vector<std::int32_t>> norms;  ///< groups that add up gradient norms; empty where there is one alone
};

/// `cost`: of at least one replica of each stage. With `clips_gradients` also what adds up norms.
PlanLikeness plan_likeness(const Problem& problem, const Plan& plan, const PlanCost& cost, bool clips_gradients);

} // namespace stagecraft
