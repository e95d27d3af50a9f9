// Max-min sharing of links without SimGrid.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/replay/beside_exchange.hpp"
#include "sim/replay/clock_start.hpp"
#include "sim/replay/max_min_run.hpp"

namespace stagecraft {
namespace {

std::vector<Timeline> replay_in_turn(std::span<const ReplayRequest> requests) {
  std::vector<Timeline> timelines;
  for (const ReplayRequest& request : requests) {
    timelines.push_back(MaxMinRun(request, clock_start(request)).take());
  }
  return timelines;
}

} // namespace

MaxMinRun::MaxMinRun(const ReplayRequest& request, double origin)
    : until_(request, origin), flows_(request.graph, request.platform), met_(request.graph, flows_),
      recurrence_(until_.request(), &flows_, origin) {
  recurrence_.start();
}

// Lets the next thing happen; returns when.
double MaxMinRun::step() {
  const auto arrived = [&](const ArrivedFlow& one) { recurrence_.arrived(one.executed, one.start, one.finish); };
  if (!met_.done() && (flows_.done() || met_.next() <= flows_.next())) { // ends first, as among those that have not met
    const double time = met_.next();
    arrived(flows_.end(met_.end_next(), time));
    return time;
  }
  const double time = flows_.next();
  if (const std::optional<ArrivedFlow> one = flows_.step()) {
    arrived(*one);
  }
  if (!flows_.met().empty()) {
    met_.add(flows_.met(), time);
  }
  return time;
}

Timeline MaxMinRun::take() {
  while (!done() && !until_.reached()) {
    until_.watch(recurrence_, step());
  }
  return until_.take(recurrence_);
}

std::vector<Timeline> replay_max_min(std::span<const ReplayRequest> requests) {
  return replay_beside_exchanges(replay_in_turn, requests);
}

} // namespace stagecraft
