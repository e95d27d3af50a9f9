// Every transfer has its links for itself.
// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "sim/replay/beside_exchange.hpp"
#include "sim/replay/in_order.hpp"
#include "sim/replay/recurrence.hpp"

namespace stagecraft {
namespace {

Timeline replay_ahead(const ReplayRequest& request) {
  Recurrence<> recurrence(request);
  recurrence.start();
  return recurrence.take();
}

std::vector<Timeline> replay_as_given(std::span<const ReplayRequest> requests) {
  std::vector<Timeline> timelines;
  for (const ReplayRequest& request : requests) {
    std::optional<Timeline> in_order = replay_in_order(request);
    timelines.push_back(in_order ? std::move(*in_order) : replay_ahead(request));
  }
  return timelines;
}

} // namespace

std::vector<Timeline> replay_analytic(std::span<const ReplayRequest> requests) {
  return replay_beside_exchanges(replay_as_given, requests);
}

} // namespace stagecraft
