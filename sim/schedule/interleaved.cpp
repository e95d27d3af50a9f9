// Interleaved 1F1B, and its combined form: each rank holds several chunks and takes micro-batches in groups (Narayanan
// et al. 2021, §2.2). SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {
namespace {

struct ForwardSlot {
  int micro_batch, chunk;
};

// Sizes of the groups: P micro-batches each if P divides M. Otherwise the sizes are as even as possible and at least P,
// since a rank gets its first micro-batch back after P hops. Larger groups come first, so that the warm-up serves all
// of them. Fewer micro-batches than ranks form one group.
std::vector<int> group_sizes(int ranks, int micro_batches) {
  const int groups = std::max(1, micro_batches / ranks);
  std::vector<int> sizes(groups, micro_batches / groups);
  std::fill_n(sizes.begin(), micro_batches % groups, micro_batches / groups + 1);
  return sizes;
}

// The order of forward slots: group after group, in a group chunk after chunk. Backward slots are the same with the
// chunks reversed.
std::vector<ForwardSlot> slots(const std::vector<int>& groups, int micro_batches, int chunks) {
  std::vector<ForwardSlot> order;
  order.reserve(static_cast<std::size_t>(micro_batches) * chunks);
  int first = 0;
  for (const int size : groups) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (int m = first; m < first + size; ++m) {
        order.push_back({m, chunk});
      }
    }
    first += size;
  }
  return order;
}

// With `combined`, one more forward before the first backward, so that a forward and the backward behind it are of
// different micro-batches or chunks on the last rank too, and both at once (Megatron-Core, get_pp_rank_microbatches).
Schedule take_turns(const ScheduleRequest& request, bool combined) {
  const int p = request.ranks;
  const int v = request.chunks;
  const int m = request.micro_batches;
  const std::vector<int> groups = group_sizes(p, m);
  const std::vector<ForwardSlot> order = slots(groups, m, v);
  const int total = m * v;
  Schedule schedule;
  for (int s = 0; s < p; ++s) {
    const int ahead = v == 1 && !combined ? p - 1 - s : 2 * (p - 1 - s) + (v - 1) * groups.front();
    const int warm_up = std::min(ahead + (combined ? 1 : 0), total);
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
      const bool follows = warm_up + k < total; // a forward
      if (follows) {
        actions.push_back(forward(warm_up + k));
      }
      actions.push_back(backward(k));
      actions.back().fused = combined && follows;
    }
  }
  return schedule;
}

} // namespace

ScheduleResult make_interleaved(const ScheduleRequest& request) { return take_turns(request, false); }

ScheduleResult make_combined_interleaved(const ScheduleRequest& request) { return take_turns(request, true); }

} // namespace stagecraft
