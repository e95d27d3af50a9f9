// Interleaved 1F1B: each rank holds several chunks and takes micro-batches in groups (Narayanan et al. 2021, §2.2).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {
namespace {

struct Slot {
  int micro_batch, chunk;
};

// The order of forward slots: groups of P micro-batches, in a group chunk after chunk. Backward slots are the same with
// the chunks reversed.
std::vector<Slot> slots(int ranks, int micro_batches, int chunks) {
  std::vector<Slot> order;
  order.reserve(static_cast<std::size_t>(micro_batches) * chunks);
  for (int first = 0; first < micro_batches; first += ranks) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (int m = first; m < std::min(first + ranks, micro_batches); ++m) {
        order.push_back({m, chunk});
      }
    }
  }
  return order;
}

} // namespace

ScheduleResult make_interleaved(const ScheduleRequest& request) {
  const int p = request.ranks;
  const int v = request.chunks;
  const int m = request.micro_batches;
  if (m % p != 0 && v > 1) {
    const int below = m / p * p;
    return Infeasible{
        "interleaved deals out micro-batches in groups of " + std::to_string(p) + " (the ranks); " + std::to_string(m) +
        " is no multiple; nearest: " + (below > 0 ? std::to_string(below) + " or " : "") + std::to_string(below + p)};
  }
  const std::vector<Slot> order = slots(p, m, v);
  const int total = m * v;
  Schedule schedule;
  for (int s = 0; s < p; ++s) {
    const int warm_up = v == 1 ? std::min(p - 1 - s, total) : std::min(2 * (p - 1 - s) + (v - 1) * p, total);
    const auto forward = [&](int k) { return Action{TaskKind::forward, order[k].micro_batch, order[k].chunk * p + s}; };
    const auto backward = [&](int k) {
      return Action{TaskKind::backward, order[k].micro_batch, (v - 1 - order[k].chunk) * p + s};
    };
    std::vector<Action>& actions = schedule.orders.emplace_back();
    actions.reserve(static_cast<std::size_t>(total) * 2);
    for (int k = 0; k < warm_up; ++k) {
      actions.push_back(forward(k));
    }
    for (int k = 0; k < total; ++k) {
      if (warm_up + k < total) {
        actions.push_back(forward(warm_up + k));
      }
      actions.push_back(backward(k));
    }
  }
  return schedule;
}

} // namespace stagecraft
