// What the runs of one study share, so that nothing is worked out twice.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/study/plan_cache.hpp"
#include "sim/study/schedule_counts.hpp"
#include "sim/study/study_costs.hpp"

namespace stagecraft {

/// Made by whoever runs scenarios, and passed on. It holds only values that could be computed again: what the study
/// costs, what schedules hold and which plans were made.
struct StudyMemo {
  /// Both must outlive it and stay where they are.
  StudyMemo(const Study& study, ScheduleCounts& schedule_counts) : costs(study), counts(schedule_counts) {}

  StudyCosts costs;
  ScheduleCounts& counts;
  PlanCache plans;
};

} // namespace stagecraft
