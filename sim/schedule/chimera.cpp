// Chimera: two pipelines over the same ranks in opposite directions, one filling the other's bubbles (Li and Hoefler
// 2021, §3.1).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {
namespace {

struct ClockSlot {
  int at;
  Action action;
};

// Adds one direction of a rank. Each task has a slot of a clock, at which no two tasks of a rank meet. Units of P
// micro-batches, half in each direction, follow one another without a gap.
void add_direction(std::vector<ClockSlot>& slots, int ranks, int stage, int first, int count) {
  for (int n = 0; n < count; ++n) {
    const int unit = n / (ranks / 2);
    const int start = 2 * ranks * unit + 2 * (n % (ranks / 2));
    slots.push_back({start + stage, {TaskKind::forward, first + n, stage}});
    slots.push_back({start + 2 * ranks - 1 - stage, {TaskKind::backward, first + n, stage}});
  }
}

} // namespace

ScheduleResult make_chimera(const ScheduleRequest& request) {
  const int p = request.ranks;
  const int m = request.micro_batches;
  if (p % 2 != 0) {
    return Infeasible{"chimera runs two pipelines over an even number of ranks; " + std::to_string(p) +
                      " is odd; nearest: " + (p > 1 ? std::to_string(p - 1) + " or " : "") + std::to_string(p + 1)};
  }
  if (m % 2 != 0) {
    return Infeasible{"chimera halves the micro-batches between two directions; " + std::to_string(m) +
                      " is odd; nearest: " + (m > 1 ? std::to_string(m - 1) + " or " : "") + std::to_string(m + 1)};
  }
  Schedule schedule;
  std::vector<ClockSlot> slots;
  for (int rank = 0; rank < p; ++rank) {
    slots.clear();
    add_direction(slots, p, rank, 0, m / 2);
    add_direction(slots, p, p - 1 - rank, m / 2, m / 2);
    std::sort(slots.begin(), slots.end(), [](const ClockSlot& a, const ClockSlot& b) { return a.at < b.at; });
    std::vector<Action>& order = schedule.orders.emplace_back();
    order.reserve(slots.size());
    for (const ClockSlot& slot : slots) {
      order.push_back(slot.action);
    }
  }
  return schedule;
}

} // namespace stagecraft
