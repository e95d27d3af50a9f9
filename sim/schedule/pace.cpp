// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/pace.hpp"

namespace stagecraft {

Pace pace_of(const Schedule& schedule) {
  const bool late =
      !schedule.flushes && !schedule.versions.empty() && !schedule.steps_each_micro_batch && !schedule.predicts_weights;
  return {schedule.flushes, schedule.steps_each_micro_batch, late, schedule.predicts_weights};
}

Pace pace_of(const ScheduleRow& row, int ranks, int micro_batches) {
  constexpr int kAnyChunks = 2; // no matter how many: schedules with several flush
  const ScheduleResult made = make_schedule(planned_row(row), {ranks, micro_batches, kAnyChunks});
  const Schedule* schedule = std::get_if<Schedule>(&made);
  return schedule != nullptr ? pace_of(*schedule) : Pace{};
}

} // namespace stagecraft
