// Splitting by hand, modelled: what a person does who can edit the split, launch it and look at the devices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/plan/estimate/plan_request.hpp"

namespace stagecraft {

/// The best split tried, and the iteration times of those splits that ran, in order.
struct HandSplit {
  PlanResult result;
  std::vector<Seconds> tried;
  int trials = 0; ///< launches, including those that ran out of memory
};

/// A uniform split, then one boundary moved by one operator per trial: away from the busiest device, or from the one
/// that ran out of memory, towards the less loaded neighbour; a move that does not help is taken back and not tried
/// again. Trials are replays if the request has them, else the closed-form estimate.
HandSplit try_by_hand(const PlanRequest& request, int trials);

} // namespace stagecraft
