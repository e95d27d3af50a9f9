// Breadth-first: all micro-batches through one chunk before the next, and back again (Lamy-Poirier 2022).
// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

ScheduleResult make_breadth_first(const ScheduleRequest& request) {
  Schedule schedule;
  for (int s = 0; s < request.ranks; ++s) {
    std::vector<Action>& order = schedule.orders.emplace_back();
    order.reserve(static_cast<std::size_t>(request.micro_batches) * request.chunks * 2);
    for (int chunk = 0; chunk < request.chunks; ++chunk) {
      for (int m = 0; m < request.micro_batches; ++m) {
        order.push_back({TaskKind::forward, m, chunk * request.ranks + s});
      }
    }
    for (int chunk = request.chunks - 1; chunk >= 0; --chunk) {
      for (int m = 0; m < request.micro_batches; ++m) {
        order.push_back({TaskKind::backward, m, chunk * request.ranks + s});
      }
    }
  }
  return schedule;
}

} // namespace stagecraft
