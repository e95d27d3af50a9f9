// Between plans and the states that searches move: chains of stages on groups of devices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/plan/estimate/plan_request.hpp"
#include "sim/strategy/heuristic/stage_moves.hpp"

namespace stagecraft {

/// The plan of a state: each group shares samples in proportion to speed on its stage; where there are fewer samples
/// than devices, the slowest get none.
Plan make_group_plan(const PlanRequest& request, const StageGroups& state);

/// Whether a state can stand for the plan's shape: stages are consecutive runs of operators, no device has two of them,
/// and none is tensor-parallel or takes micro-batches in turn.
bool is_group_chain(const Plan& plan);

/// The state of such a plan.
StageGroups groups_of(const PlanRequest& request, const Plan& plan);

} // namespace stagecraft
