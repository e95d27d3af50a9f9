// SPDX-License-Identifier: Apache-2.0
#include "sim/study/known_schedules.hpp"

namespace stagecraft {

ScheduleResult KnownSchedules::find_or_make(const ScheduleRow& row, int ranks, int micro_batches, int chunks) {
  constexpr std::size_t kMostActions = 1'000'000;
  if (actions_ > kMostActions) {
    known_.clear();
    actions_ = 0;
  }
  const auto [known, is_first] = known_.try_emplace({&row, ranks, micro_batches, chunks});
  if (known->second) {
    return *known->second;
  }
  ScheduleResult made = make_schedule(row, {ranks, micro_batches, chunks});
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
