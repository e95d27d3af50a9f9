// SPDX-License-Identifier: Apache-2.0
#include "sim/study/known_schedules.hpp"

namespace stagecraft {

const ScheduleResult& KnownSchedules::find_or_make(const ScheduleRow& row, int ranks, int micro_batches, int chunks) {
  constexpr std::size_t kMostActions = 1'000'000;
  const std::tuple key{&row, ranks, micro_batches, chunks};
  if (const auto known = known_.find(key); known != known_.end()) {
    return known->second;
  }
  if (actions_ > kMostActions) {
    known_.clear();
    actions_ = 0;
  }
  ScheduleResult& made = known_[key] = make_schedule(row, {ranks, micro_batches, chunks});
  if (const Schedule* schedule = std::get_if<Schedule>(&made)) {
    for (const auto& order : schedule->orders) {
      actions_ += order.size();
    }
  }
  return made;
}

} // namespace stagecraft
