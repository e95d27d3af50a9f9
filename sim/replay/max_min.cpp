// Max-min sharing of links without SimGrid.
// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/beside_exchange.hpp"
#include "sim/replay/clock_start.hpp"
#include "sim/replay/max_min_flows.hpp"
#include "sim/replay/recurrence.hpp"

namespace stagecraft {
namespace {

Timeline replay_one(const ReplayRequest& request) {
  SharedFlows flows(request.graph, request.platform);
  MaxMinFlows met(request.graph, flows);
  Recurrence<SharedFlows> recurrence(request, &flows, clock_start(request));
  const auto arrived = [&](const ArrivedFlow& one) { recurrence.arrived(one.executed, one.start, one.finish); };
  recurrence.start();
  while (!flows.done() || !met.done()) {
    if (!met.done() && (flows.done() || met.next() <= flows.next())) { // ends first, as among those that have not met
      const double time = met.next();
      arrived(flows.end(met.end_next(), time));
      continue;
    }
    const double time = flows.next();
    if (const std::optional<ArrivedFlow> one = flows.step()) {
      arrived(*one);
    }
    if (!flows.met().empty()) {
      met.add(flows.met(), time);
    }
  }
  return recurrence.take();
}

std::vector<Timeline> replay_in_turn(std::span<const ReplayRequest> requests) {
  std::vector<Timeline> timelines;
  for (const ReplayRequest& request : requests) {
    timelines.push_back(replay_one(request));
  }
  return timelines;
}

} // namespace

std::vector<Timeline> replay_max_min(std::span<const ReplayRequest> requests) {
  return replay_beside_exchanges(replay_in_turn, requests);
}

} // namespace stagecraft
