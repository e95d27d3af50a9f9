// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/replay_apart.hpp"

#include "sim/replay/clock_start.hpp"
#include "sim/replay/recurrence.hpp"
#include "sim/replay/shared_flows.hpp"

namespace stagecraft {

std::optional<Timeline> replay_apart(const ReplayRequest& request) {
  SharedFlows flows(request.graph, request.platform);
  Recurrence<SharedFlows> recurrence(request, &flows, clock_start(request));
  recurrence.start();
  while (!flows.done()) {
    const std::optional<ArrivedFlow> one = flows.step();
    if (!flows.met().empty()) {
      return std::nullopt;
    }
    if (one) {
      recurrence.arrived(one->executed, one->start, one->finish);
    }
  }
  return recurrence.take();
}

} // namespace stagecraft
