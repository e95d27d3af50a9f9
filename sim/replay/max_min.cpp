// Max-min sharing of links without SimGrid.
// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "sim/replay/beside_exchange.hpp"
#include "sim/replay/clock_start.hpp"
#include "sim/replay/max_min_run.hpp"
#include "sim/replay/replay_apart.hpp"

namespace stagecraft {
namespace {

std::vector<Timeline> replay_in_turn(std::span<const ReplayRequest> requests) {
  std::vector<Timeline> timelines;
  for (const ReplayRequest& request : requests) {
    std::optional<Timeline> apart = replay_apart(request);
    timelines.push_back(apart ? std::move(*apart) : MaxMinRun(request, clock_start(request)).take());
  }
  return timelines;
}

} // namespace

MaxMinRun::MaxMinRun(const ReplayRequest& request, double origin)
    : until_(request, origin), flows_(request.graph, request.platform), met_(request.graph, request.platform),
      recurrence_(until_.request(), &flows_, origin), now_(origin) {}

Timeline MaxMinRun::take() {
  recurrence_.start();
  while (!flows_.done() && !until_.reached()) {
    const double time = flows_.next();
    step();
    if (!flows_.met().empty()) {
      timer_ = Timer::enter;
      rings_at_ = time;
      run_engine();
    }
  }
  return until_.take(recurrence_);
}

// What SimGrid's engine does in a turn, until nothing is under way or all is known.
void MaxMinRun::run_engine() {
  while (!until_.reached() && move_clock()) {
    for (bool rang = true; rang;) {
      rang = ring();
      handle_ended();
    }
  }
}

bool MaxMinRun::move_clock() {
  double delta = timer_ == Timer::none ? -1 : rings_at_ - now_;
  const double next = met_.until_next(now_);
  if ((delta < 0 || next < delta) && next >= 0) {
    delta = next;
  }
  if (delta < 0) {
    return false;
  }
  now_ += delta;
  met_.end_at(now_);
  return true;
}

bool MaxMinRun::ring() {
  bool rang = false;
  while (timer_ != Timer::none && now_ >= rings_at_) {
    rang = true;
    if (std::exchange(timer_, Timer::none) == Timer::enter) {
      enter();
    }
    follow();
  }
  return rang;
}

void MaxMinRun::handle_ended() {
  while (met_.any_ended()) {
    const MaxMinFlows::Ended ended = met_.take_ended();
    if (!until_.reached()) {
      arrived(flows_.end(ended.number, now_));
      follow();
    }
    met_.release(ended.flow);
  }
}

void MaxMinRun::step() {
  if (const std::optional<ArrivedFlow> one = flows_.step()) {
    arrived(*one);
  }
}

void MaxMinRun::arrived(const ArrivedFlow& one) {
  recurrence_.arrived(one.executed, one.start, one.finish);
  until_.watch(recurrence_, one.finish);
}

void MaxMinRun::enter() {
  for (const MetFlow& met : flows_.met()) {
    met_.add(met, now_);
  }
}

// Lets happen what happens to flows that have not met by now, and sets the timer for what happens next to them.
void MaxMinRun::follow() {
  while (!until_.reached() && !flows_.done() && flows_.next() <= now_) {
    step();
    enter();
  }
  const bool waits = !until_.reached() && !met_.empty() && !flows_.done();
  timer_ = waits ? Timer::follow : Timer::none;
  rings_at_ = waits ? flows_.next() : rings_at_;
}

std::vector<Timeline> replay_max_min(std::span<const ReplayRequest> requests) {
  return replay_beside_exchanges(replay_in_turn, requests);
}

} // namespace stagecraft
