// The first step of a run: from a scenario to a plan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/schedule/pace.hpp"
#include "sim/study/planning/study_memo.hpp"
#include "sim/study/scenario.hpp"

namespace stagecraft {

/// The scenario's plan, checked against memory and kernels; or why there is none.
Planned plan_scenario(StudyMemo& memo, const Scenario& scenario);

/// What the scenario's strategy is called with. The memo must outlive it.
PlanRequest plan_request(StudyMemo& memo, const Scenario& scenario);
/// The same with the costs of any problem. It offers replays only for the study's own problem.
PlanRequest plan_request(StudyMemo& memo, const Scenario& scenario, const Problem& problem);
/// What the scenario's strategy plans, without the schedule's own rules; with a change, for the study's costs, else for
/// those that planners believe.
Planned plan_of_strategy(StudyMemo& memo, const Scenario& scenario, FitChange change = FitChange::none);
/// What a strategy is called with for any problem and devices. It offers no replays.
PlanRequest plan_request(StudyMemo& memo, const Problem& problem, const ScheduleRow& schedule,
                         std::vector<DeviceId> devices);

/// The pace of a scenario's schedule on so many ranks.
Pace pace_of(const Scenario& scenario, int ranks);

/// The study's number of micro-batches whose feasible plan has the least estimate_iteration(); the first number where
/// no plan is feasible. For orders from elsewhere their own number, if it is one of the study's.
int choose_micro_batches(StudyMemo& memo, Scenario scenario);

} // namespace stagecraft
