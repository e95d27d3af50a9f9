// Orders that alternate one forward and one backward after a warm-up: 1F1B, its eager and its combined form, ZB-H1 and
// ZB-H2.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {
namespace {

// Rank s: w forwards; then F(w+i), B(i) while forwards last; then the remaining backwards. With `weight_delay` >= 0,
// every B from number weight_delay on is followed by the oldest W, and the W that are left come last.
std::vector<Action> alternate(int stage, int micro_batches, int warm_up, int weight_delay) {
  const int w = std::min(warm_up, micro_batches);
  std::vector<Action> order(static_cast<std::size_t>(micro_batches) * (weight_delay >= 0 ? 3 : 2));
  auto next = order.begin();
  int next_weight = 0;
  const auto go_back = [&](int i) {
    *next++ = {TaskKind::backward, i, stage};
    if (weight_delay >= 0 && i >= weight_delay) {
      *next++ = {TaskKind::weight, next_weight++, stage};
    }
  };
  for (int m = 0; m < w; ++m) {
    *next++ = {TaskKind::forward, m, stage};
  }
  for (int i = 0; w + i < micro_batches; ++i) {
    *next++ = {TaskKind::forward, w + i, stage};
    go_back(i);
  }
  for (int i = micro_batches - w; i < micro_batches; ++i) {
    go_back(i);
  }
  while (weight_delay >= 0 && next_weight < micro_batches) {
    *next++ = {TaskKind::weight, next_weight++, stage};
  }
  return order;
}

} // namespace

ScheduleResult make_one_f_one_b(const ScheduleRequest& request) {
  Schedule schedule;
  for (int s = 0; s < request.ranks; ++s) {
    schedule.orders.push_back(alternate(s, request.micro_batches, request.ranks - 1 - s, -1));
  }
  return schedule;
}

ScheduleResult make_eager_one_f_one_b(const ScheduleRequest& request) {
  Schedule schedule;
  for (int s = 0; s < request.ranks; ++s) {
    schedule.orders.push_back(alternate(s, request.micro_batches, 2 * (request.ranks - 1 - s), -1));
  }
  return schedule;
}

// Rank s: 2 (P - 1 - s) + 1 forwards; then each further forward beside the oldest backward; then the backwards left.
// One more forward than in eager 1F1B, so that a pair is of two micro-batches on the last rank too.
ScheduleResult make_combined_one_f_one_b(const ScheduleRequest& request) {
  Schedule schedule;
  for (int s = 0; s < request.ranks; ++s) {
    const int warm_up = std::min(2 * (request.ranks - 1 - s) + 1, request.micro_batches);
    std::vector<Action>& order = schedule.orders.emplace_back(alternate(s, request.micro_batches, warm_up, -1));
    for (std::size_t at = warm_up + 1; at < order.size(); ++at) {
      order[at].fused = order[at].kind == TaskKind::backward && order[at - 1].kind == TaskKind::forward;
    }
  }
  return schedule;
}

ScheduleResult make_zb_h1(const ScheduleRequest& request) {
  Schedule schedule;
  for (int s = 0; s < request.ranks; ++s) {
    schedule.orders.push_back(alternate(s, request.micro_batches, request.ranks - 1 - s, s));
  }
  return schedule;
}

ScheduleResult make_zb_h2(const ScheduleRequest& request) {
  Schedule schedule;
  for (int s = 0; s < request.ranks; ++s) {
    schedule.orders.push_back(alternate(s, request.micro_batches, 2 * (request.ranks - 1 - s), 2 * s));
  }
  return schedule;
}

} // namespace stagecraft
