// Every transfer has its links for itself.
// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/beside_exchange.hpp"
#include "sim/replay/recurrence.hpp"

namespace stagecraft {
namespace {

std::vector<Timeline> replay_as_given(std::span<const ReplayRequest> requests) {
  std::vector<Timeline> timelines;
  for (const ReplayRequest& request : requests) {
    Recurrence<> recurrence(request);
    recurrence.start();
    timelines.push_back(recurrence.take());
  }
  return timelines;
}

} // namespace

std::vector<Timeline> replay_analytic(std::span<const ReplayRequest> requests) {
  return replay_beside_exchanges(replay_as_given, requests);
}

} // namespace stagecraft
