// One micro-batch at a time: naive model parallelism, and gradient accumulation on one stage.
// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

ScheduleResult make_naive(const ScheduleRequest& request) {
  Schedule schedule;
  for (int s = 0; s < request.ranks; ++s) {
    std::vector<Action>& order = schedule.orders.emplace_back();
    for (int m = 0; m < request.micro_batches; ++m) {
      order.push_back({TaskKind::forward, m, s});
      order.push_back({TaskKind::backward, m, s});
    }
  }
  return schedule;
}

ScheduleResult make_accumulate(const ScheduleRequest& request) {
  if (request.ranks > 1) {
    return Infeasible{"accumulate runs one stage, replicated or not; the plan has " + std::to_string(request.ranks)};
  }
  return make_naive(request);
}

} // namespace stagecraft
