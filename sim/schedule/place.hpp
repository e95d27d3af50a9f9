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

/// Places each stage on the ranks in whose orders it stands; or why the plan's shape is another one. Rank r is the
/// device (or the group) of stage r; where a stage's replicas are ranks of their own, ranks count the replicas of all
/// stages.
std::variant<PlacedPlan, Infeasible> place(const Plan& plan, const Schedule& schedule);

} // namespace stagecraft
