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
    timelines.push_back(MaxMinRun(request).finish());
  }
  return timelines;
}

// Where iterations overlap, only as far as their period shows.
std::vector<Timeline> replay_in_turn_until_idle(std::span<const ReplayRequest> requests) {
  std::vector<Timeline> timelines;
  for (const ReplayRequest& request : requests) {
    MaxMinRun run(request);
    timelines.push_back(request.graph.overlaps ? run.until_idle() : run.finish());
  }
  return timelines;
}

} // namespace

MaxMinRun::MaxMinRun(const ReplayRequest& request)
    : graph_(request.graph), last_(static_cast<std::size_t>(request.iterations - 1) * request.graph.tasks()),
      origin_(clock_start(request)), flows_(request.graph, request.platform), met_(request.graph, flows_),
      recurrence_(request, &flows_, origin_) {
  recurrence_.start();
}

double MaxMinRun::next_time() {
  return met_.done() ? flows_.next() : flows_.done() ? met_.next() : std::min(met_.next(), flows_.next());
}

void MaxMinRun::step() {
  const auto arrived = [&](const ArrivedFlow& one) { recurrence_.arrived(one.executed, one.start, one.finish); };
  if (!met_.done() && (flows_.done() || met_.next() <= flows_.next())) { // ends first, as among those that have not met
    const double time = met_.next();
    arrived(flows_.end(met_.end_next(), time));
    return;
  }
  const double time = flows_.next();
  if (const std::optional<ArrivedFlow> one = flows_.step()) {
    arrived(*one);
  }
  if (!flows_.met().empty()) {
    met_.add(flows_.met(), time);
  }
}

double MaxMinRun::first_idle() const {
  double first = kInfinity;
  for (std::size_t device = 0; device < graph_.devices.size(); ++device) {
    const double end = recurrence_.finish_of(last_ + graph_.program_of(device).back());
    first = end > origin_ ? std::min(first, end) : first;
  }
  return first;
}

Timeline MaxMinRun::until_idle() {
  const auto& waits = graph_.waits;
  if (origin_ <= static_cast<double>(graph_.ties.size()) + *std::max_element(waits.begin(), waits.end())) {
    return finish();
  }
  while (!done() && next_time() <= first_idle()) {
    for (std::size_t steps = 0; steps <= graph_.devices.size() && !done(); ++steps) { // seldom asks for the end
      step();
    }
  }
  Timeline known = recurrence_.known();
  const auto first = known.finish.begin();
  return *std::max_element(first, first + graph_.tasks()) < kInfinity ? known : finish();
}

Timeline MaxMinRun::finish() {
  while (!done()) {
    step();
  }
  return recurrence_.take();
}

std::vector<Timeline> replay_max_min(std::span<const ReplayRequest> requests) {
  return replay_beside_exchanges(replay_in_turn, requests);
}

std::vector<Timeline> replay_max_min_until_idle(std::span<const ReplayRequest> requests) {
  const bool any_slow = std::any_of(requests.begin(), requests.end(),
                                    [](const ReplayRequest& request) { return exchanges_slow(request.platform); });
  return any_slow ? replay_max_min(requests) : replay_in_turn_until_idle(requests);
}

} // namespace stagecraft
