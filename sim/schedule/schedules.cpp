// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

std::span<const ScheduleRow> schedules() {
  static constexpr std::array kRows = {
      ScheduleRow{"accumulate", "one stage, gradients of all micro-batches added up", false, false, make_accumulate},
      ScheduleRow{"naive", "one micro-batch at a time through all stages", false, false, make_naive},
      ScheduleRow{"gpipe", "all forwards, then all backwards (Huang et al. 2019)", false, false, make_gpipe},
      ScheduleRow{"1f1b", "one forward, one backward, with a flush (DAPPLE, PipeDream-Flush)", false, false,
                  make_one_f_one_b},
      ScheduleRow{"eager-1f1b", "1f1b with twice the warm-up, to hide slow links", false, false,
                  make_eager_one_f_one_b},
      ScheduleRow{"interleaved", "1f1b over several chunks per device (Narayanan et al. 2021)", false, true,
                  make_interleaved},
      ScheduleRow{"zb-h1", "backward split in two, weight gradients fill bubbles, memory of 1f1b (Qi et al. 2023)",
                  true, false, make_zb_h1},
  };
  return kRows;
}

ScheduleResult make_schedule(const ScheduleRow& row, const ScheduleRequest& request) {
  ScheduleResult result = row.make(request);
  if (Schedule* schedule = std::get_if<Schedule>(&result)) {
    schedule->name = row.name;
    schedule->stages = request.ranks * request.chunks;
    schedule->micro_batches = request.micro_batches;
    schedule->splits_backward = row.splits_backward;
  }
  return result;
}

} // namespace stagecraft
