// Finds on which ranks a schedule runs the stages of a plan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// A plan as a schedule runs it: a stage on two ranks has the devices of both, and stages whose ranks take whole
/// micro-batches in turn are marked.
struct PlacedPlan {
  Plan plan;
  std::vector<int> rank_of; ///< [DeviceId]; -1 for devices that the plan does not use
};

/// Places each stage on the ranks whose orders contain it, or says why the plan's shape differs. Rank r is the device
/// (or the group) of stage r. If the replicas of stages are ranks of their own, ranks number the replicas of all stages
/// in order.
std::variant<PlacedPlan, Infeasible> place(const Plan& plan, const Schedule& schedule);

} // namespace stagecraft
