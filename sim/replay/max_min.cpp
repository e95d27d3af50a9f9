// Max-min sharing of links without SimGrid.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "sim/replay/beside_exchange.hpp"
#include "sim/replay/clock_start.hpp"
#include "sim/replay/max_min_run.hpp"
#include "sim/replay/replay_apart.hpp"

namespace stagecraft {
namespace {

Timeline replay_one(const ReplayRequest& request) {
  const double origin = clock_start(request);
  auto apart = std::make_unique<ApartReplay>(request, origin);
  apart->run();
  if (!apart->has_met()) {
    return apart->recurrence.take();
  }
  return MaxMinRun(request, origin, may_go_on(request) ? std::move(apart) : nullptr).take();
}

std::vector<Timeline> replay_in_turn(std::span<const ReplayRequest> requests) {
  std::vector<Timeline> timelines;
  std::transform(requests.begin(), requests.end(), std::back_inserter(timelines), replay_one);
  return timelines;
}

} // namespace

MaxMinRun::MaxMinRun(const ReplayRequest& request, double origin, std::unique_ptr<ApartReplay> apart)
    : until_(request, origin),
      apart_(apart != nullptr ? std::move(apart) : std::make_unique<ApartReplay>(until_.request(), origin)),
      flows_(apart_->flows), met_(request.graph, request.platform), recurrence_(apart_->recurrence), now_(origin) {}

Timeline MaxMinRun::take() {
  if (apart_->has_met()) {
    share_from(apart_->met_at);
  } else {
    recurrence_.start();
  }
  while (!flows_.done() && !until_.reached()) {
    const double time = flows_.next();
    step();
    if (!flows_.met().empty()) {
      share_from(time);
    }
  }
  return until_.take(recurrence_);
}

// Shares links among the flows that have met then, and all that meet these, until none of them is under way.
void MaxMinRun::share_from(double time) {
  timer_ = Timer::enter;
  rings_at_ = time;
  run_engine();
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
