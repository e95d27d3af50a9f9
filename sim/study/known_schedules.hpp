// Schedules whose orders follow from numbers alone, made once for all the plans that a planner tries under them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <tuple>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// Remembers what make_schedule() answered, from the second time on that it is asked: a run alone asks once. It holds
/// about a million actions at most, and then starts anew.
class KnownSchedules {
public:
  /// make_schedule() of a row that is neither timed nor in_turn.
  ScheduleResult find_or_make(const ScheduleRow& row, int ranks, int micro_batches, int chunks);

private:
  std::map<std::tuple<const ScheduleRow*, int, int, int>, std::optional<ScheduleResult>> known_; // nothing: asked once
  std::size_t actions_ = 0;                                                                      // of all that is known
};

} // namespace stagecraft
