// Loads the module of SimGrid when it is first needed.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/process/module.hpp"
#include "sim/replay/beside_exchange.hpp"
#include "sim/replay/clock_start.hpp"
#include "sim/replay/replay_apart.hpp"
#include "sim/replay/simgrid/module.hpp"

namespace stagecraft {
namespace {

std::vector<Timeline> replay_in_module(std::span<const ReplayRequest> requests, bool computes, ApartReplay* apart) {
  const auto replay =
      module_function<decltype(stagecraft_replay_simgrid)>("stagecraft_simgrid.so", "stagecraft_replay_simgrid");
  std::vector<Timeline> timelines;
  replay(requests, computes, apart, timelines);
  return timelines;
}

std::vector<Timeline> replay_in_full(std::span<const ReplayRequest> requests) {
  return replay_in_module(requests, true, nullptr);
}

// A graph by itself has an engine by itself, which goes on where the first flows met. It goes no further than its
// period shows, which has to be watched from the start.
std::vector<Timeline> replay_alone(const ReplayRequest& request) {
  ApartReplay apart(request, clock_start(request));
  apart.run();
  if (!apart.has_met()) {
    return {apart.recurrence.take()};
  }
  return replay_in_module({&request, 1}, false, may_go_on(request) ? &apart : nullptr);
}

// SimGrid is asked only where flows meet.
std::vector<Timeline> replay_what_meets(std::span<const ReplayRequest> requests) {
  if (requests.size() == 1) {
    return replay_alone(requests.front());
  }
  std::vector<Timeline> timelines(requests.size());
  std::vector<ReplayRequest> meeting;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (std::optional<Timeline> apart = replay_apart(requests[i])) {
      timelines[i] = std::move(*apart);
    } else {
      meeting.push_back(requests[i]);
      places.push_back(i);
    }
  }
  std::vector<Timeline> shared = meeting.empty() ? std::vector<Timeline>{} : replay_in_module(meeting, false, nullptr);
  for (std::size_t i = 0; i < places.size(); ++i) {
    timelines[places[i]] = std::move(shared[i]);
  }
  return timelines;
}

} // namespace

std::vector<Timeline> replay_simgrid(std::span<const ReplayRequest> requests) {
  return replay_beside_exchanges(replay_what_meets, requests);
}

std::vector<Timeline> replay_simgrid_full(std::span<const ReplayRequest> requests) {
  return replay_beside_exchanges(replay_in_full, requests);
}

} // namespace stagecraft
