// What the runs of one study share, so that nothing is worked out twice.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "sim/plan/estimate/problem_memo.hpp"
#include "sim/study/planning/plan_cache.hpp"
#include "sim/study/planning/schedule_counts.hpp"
#include "sim/study/study_costs.hpp"

namespace stagecraft {

/// Strategy, schedule or orders, micro-batches, choice of recompute, seed: what a change that fits depends on.
using FitKey = std::tuple<const StrategyRow*, const ScheduleRow*, const Schedule*, int, int, std::uint64_t>;

/// Made by whoever runs scenarios, and passed on. It holds only values that could be computed again: what the study
/// costs, what schedules hold, which plans were made and which changes were found.
struct StudyMemo {
  /// Both must outlive it and stay where they are.
  StudyMemo(const Study& study, ScheduleCounts& schedule_counts) : costs(study), counts(schedule_counts) {}

  StudyCosts costs;
  ScheduleCounts& counts;
  PlanCache plans;
  ProblemMemo problem; ///< of the problem that was planned last; questions about one come one after the other
  std::map<FitKey, std::string> fit_changes;
};

} // namespace stagecraft
