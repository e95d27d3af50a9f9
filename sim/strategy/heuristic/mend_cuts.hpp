// Cuts of pipelines over tensor-parallel groups.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/plan/estimate/plan_request.hpp"

namespace stagecraft {

/// The plan, with cuts moved behind which a group computes whole what it divides in the whole model: the queries'
/// product divides attention's heads, and where it is in the stage before, each rank computes all of them. A planner
/// over groups sees each operator as the group has it in the whole model, so it does not see what such a cut costs. The
/// cut moves before that product or behind what it divides, where score_plan() is better; else it stays, as do all cuts
/// of plans without tensor groups, whose stages are no intervals, or whose stages' letters are searched for.
Plan mend_cuts(const PlanRequest& request, Plan plan);

} // namespace stagecraft
