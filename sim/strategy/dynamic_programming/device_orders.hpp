// Which device each stage of a pipeline gets: the search over all orders of devices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "sim/strategy/dynamic_programming/ideal_pipeline.hpp"

namespace stagecraft {

/// Devices from fastest to slowest for the whole model, ties in the order given.
std::vector<DeviceId> fastest_first(const Problem& problem, std::vector<DeviceId> devices);

/// Antichain states and what they cost.
struct CostedStates {
  AntichainStates states;
  StateCosts costs;
  UnlimitedPipelines pipelines; ///< that were found over them
};
/// Those of the request's problem, at most its state_cap.
std::shared_ptr<CostedStates> costed_states(const PlanRequest& request);

/// The plan with the least bottleneck over these states and the devices in this order, each with one stage or, unless
/// `all` have one, left out: A[j][n] = min over k, n' < n of max(A[k][n'], T(k, j, device n), X(k, device n', device
/// n)). Its objective is the bottleneck, and its note says whether branches were contracted.
PlanResult best_in_order(const PlanRequest& request, CostedStates& costed, const std::vector<DeviceId>& devices,
                         bool all);

/// The plan with the least bottleneck over all antichain states and all orders of the request's devices. Each device
/// has one stage or is left out. The plan's objective is the bottleneck. The search counts the devices used of each
/// class, so permutations of equal devices cost nothing. With very many classes only the order from fastest to slowest
/// is tried, and the note says so.
PlanResult best_over_orders(const PlanRequest& request);

} // namespace stagecraft
