// Finds on which ranks a schedule runs the stages of a plan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// A plan as a schedule runs it: a stage on two ranks has the devices of both, its own first, which take whole
/// micro-batches in turn.
struct PlacedPlan {
  Plan plan;
  bool keeps_turns = true;  ///< every stage has as many turns, and a micro-batch has the same one in all of them
  std::vector<int> rank_of; ///< [DeviceId]; -1 for devices that the plan does not use
};

/// Places each stage on the ranks whose orders contain it, or says why the plan's shape differs. Rank r is the device
/// (or the group, or the replicas) of stage r: a stage on several ranks has as many replicas on each. If the replicas
/// of stages are ranks of their own, ranks number the replicas of all stages
/// in order.
std::variant<PlacedPlan, Infeasible> place(const Plan& plan, const Schedule& schedule);

} // namespace stagecraft
