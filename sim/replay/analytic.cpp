// Every transfer has its links for itself.
// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "sim/replay/recurrence.hpp"

namespace stagecraft {

std::vector<Timeline> replay_analytic(std::span<const ReplayRequest> requests) {
  std::vector<Timeline> timelines;
  for (const ReplayRequest& request : requests) {
    Recurrence<> recurrence(request);
    recurrence.start();
    if (!recurrence.complete()) {
      throw std::runtime_error("the replay stopped with tasks waiting for each other");
    }
    timelines.push_back(recurrence.take());
  }
  return timelines;
}

} // namespace stagecraft
