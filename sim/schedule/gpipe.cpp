// All forwards, then all backwards in the opposite order, as torchgpipe runs them.
// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

ScheduleResult make_gpipe(const ScheduleRequest& request) {
  Schedule schedule;
  for (int s = 0; s < request.ranks; ++s) {
    std::vector<Action>& order = schedule.orders.emplace_back();
    order.reserve(static_cast<std::size_t>(request.micro_batches) * 2);
    for (int m = 0; m < request.micro_batches; ++m) {
      order.push_back({TaskKind::forward, m, s});
    }
    for (int m = request.micro_batches - 1; m >= 0; --m) {
      order.push_back({TaskKind::backward, m, s});
    }
  }
  return schedule;
}

} // namespace stagecraft
