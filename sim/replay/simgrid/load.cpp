// Loads the module of SimGrid when it is first needed.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/process/module.hpp"
#include "sim/replay/beside_exchange.hpp"
#include "sim/replay/replay_apart.hpp"
#include "sim/replay/simgrid/module.hpp"

namespace stagecraft {
namespace {

std::vector<Timeline> replay_in_module(std::span<const ReplayRequest> requests, bool computes) {
  const auto replay =
      module_function<decltype(stagecraft_replay_simgrid)>("stagecraft_simgrid.so", "stagecraft_replay_simgrid");
  std::vector<Timeline> timelines;
  replay(requests, computes, timelines);
  return timelines;
}

std::vector<Timeline> replay_in_full(std::span<const ReplayRequest> requests) {
  return replay_in_module(requests, true);
}

// SimGrid is asked only where flows meet.
std::vector<Timeline> replay_what_meets(std::span<const ReplayRequest> requests) {
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
  std::vector<Timeline> shared = meeting.empty() ? std::vector<Timeline>{} : replay_in_module(meeting, false);
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
