// SPDX-License-Identifier: Apache-2.0
#include "sim/study/known_schedules.hpp"

namespace stagecraft {

ScheduleRequest request_by_numbers(const Problem& problem, int ranks, int chunks) {
  return {.ranks = ranks,
          .micro_batches = problem.micro_batches,
          .chunks = chunks,
          .fills = problem.training.pipeline_fills};
}

ScheduleResult KnownSchedules::find_or_make(const ScheduleRow& row, const ScheduleRequest& request) {
  constexpr std::size_t kMostActions = 1'000'000;
  if (actions_ > kMostActions) {
    known_.clear();
    actions_ = 0;
  }
  const auto [known, is_first] =
      known_.try_emplace({&row, request.ranks, request.micro_batches, request.chunks, request.fills});
  if (known->second) {
    return *known->second;
  }
  ScheduleResult made = make_schedule(row, request);
  if (!is_first) {
    known->second = made;
    if (const Schedule* schedule = std::get_if<Schedule>(&made)) {
      for (const auto& order : schedule->orders) {
        actions_ += order.size();
      }
    }
  }
  return made;
}

} // namespace stagecraft
