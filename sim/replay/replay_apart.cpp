// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/replay_apart.hpp"

#include "sim/replay/clock_start.hpp"

namespace stagecraft {

void ApartReplay::run() {
  recurrence.start();
  while (!flows.done()) {
    met_at = flows.next();
    const std::optional<ArrivedFlow> one = flows.step();
    if (has_met()) {
      return;
    }
    if (one) {
      recurrence.arrived(one->executed, one->start, one->finish);
    }
  }
}

bool may_go_on(const ReplayRequest& request) {
  return request.most_iterations < request.iterations || !request.graph.overlaps;
}

std::optional<Timeline> replay_apart(const ReplayRequest& request) {
  ApartReplay replay(request, clock_start(request));
  replay.run();
  return replay.has_met() ? std::nullopt : std::optional(replay.recurrence.take());
}

} // namespace stagecraft
