// Schedules whose orders follow from numbers alone, made once for all the plans that a planner tries under them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <tuple>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// Remembers what make_schedule() answered. It holds at most about a million actions, and then starts anew.
class KnownSchedules {
public:
  /// make_schedule() of a row that is neither timed nor in_turn. Valid until the next call.
  const ScheduleResult& find_or_make(const ScheduleRow& row, int ranks, int micro_batches, int chunks);

private:
  std::map<std::tuple<const ScheduleRow*, int, int, int>, ScheduleResult> known_;
  std::size_t actions_ = 0; // of all that is known
};

} // namespace stagecraft
