// DualPipe and DualPipeV: two flows of micro-batches meet on every rank, the forward of one beside the backward of the
// other (DeepSeek-AI 2024, §3.2.1, and its published code).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {
namespace {

// A flow of micro-batches, as seen by a rank.
struct Flow {
  int stage, forward, backward; // the rank's stage in this flow, and the flow's next micro-batches
};

// The order of one rank. Flow 0 reaches it first, after h hops; flow 1 reaches it later. The ranks where the flows meet
// are half - 1 - h hops away.
class Order {
public:
  Order(int h, int half, int count, Flow zero, Flow one) : flows_{zero, one} {
    actions_.reserve(static_cast<std::size_t>(count) * 6);
    const int apart = half - 1 - h;
    for (int n = 0; n < 2 * apart; ++n) {
      forward(0);
    }
    for (int n = 0; n < h + 1; ++n) {
      forward(0);
      forward(1);
    }
    for (int n = 0; n < apart; ++n) {
      backward(1);
      weight();
      forward(1);
    }
    for (int n = 0; n < count - 2 * half + h + 1; ++n) {
      forward(0); // where the flows meet, the first two are kept apart, which makes the bubble smaller
      whole_backward(1, n > 0 || apart > 0);
      forward(1);
      whole_backward(0, true);
    }
    for (int n = 0; n < apart; ++n) {
      whole_backward(1, false);
      forward(1);
      whole_backward(0, true);
    }
    drain(h);
    for (int n = 0; n < apart; ++n) {
      weight();
      backward(0);
    }
    while (next_weight_ < delayed_.size()) {
      weight();
    }
  }

  std::vector<Action> take() { return std::move(actions_); }

private:
  // The last backwards of both flows. From the middle on they are split, and their W wait to fill the end.
  void drain(int h) {
    const int middle = (h + 1) / 2;
    for (int n = 0; n <= h; ++n) {
      for (const int flow : {1, 0}) {
        const bool split = n > middle || (n == middle && (h % 2 != 0 || flow == 0));
        split ? backward(flow) : whole_backward(flow, false);
      }
    }
  }

  void forward(int flow) { actions_.push_back({TaskKind::forward, flows_[flow].forward++, flows_[flow].stage}); }
  void backward(int flow) {
    const Action action{TaskKind::backward, flows_[flow].backward++, flows_[flow].stage};
    actions_.push_back(action);
    delayed_.push_back({TaskKind::weight, action.micro_batch, action.stage});
  }
  void whole_backward(int flow, bool fused) {
    const int m = flows_[flow].backward++;
    actions_.push_back({TaskKind::backward, m, flows_[flow].stage, fused});
    actions_.push_back({TaskKind::weight, m, flows_[flow].stage, true});
  }
  void weight() { actions_.push_back(delayed_[next_weight_++]); }

  Flow flows_[2];
  std::vector<Action> actions_, delayed_;
  std::size_t next_weight_ = 0;
};

} // namespace

ScheduleResult make_dual_pipe(const ScheduleRequest& request) {
  const int p = request.ranks;
  const int m = request.micro_batches;
  if (p % 2 != 0) {
    return Infeasible{"dualpipe runs two flows over an even number of ranks; " + std::to_string(p) +
                      " is odd; nearest: " + (p > 1 ? std::to_string(p - 1) + " or " : "") + std::to_string(p + 1)};
  }
  if (m < 2 * p) {
    return Infeasible{"dualpipe needs two micro-batches per rank; " + std::to_string(m) + " on " + std::to_string(p) +
                      " ranks are too few; nearest: " + std::to_string(2 * p)};
  }
  if (m % 2 != 0) {
    return Infeasible{"dualpipe halves the micro-batches between two directions; " + std::to_string(m) +
                      " is odd; nearest: " + (m > 2 * p ? std::to_string(m - 1) + " or " : "") + std::to_string(m + 1)};
  }
  Schedule schedule;
  for (int rank = 0; rank < p; ++rank) {
    const int h = std::min(rank, p - 1 - rank);
    const int near = rank == h ? 0 : m / 2; // the first micro-batch of the flow that begins at the nearer end
    const int far = m / 2 - near;
    schedule.orders.push_back(Order(h, p / 2, m / 2, {h, near, near}, {p - 1 - h, far, far}).take());
  }
  return schedule;
}

ScheduleResult make_dual_pipe_v(const ScheduleRequest& request) {
  const int p = request.ranks;
  const int m = request.micro_batches;
  if (m < 2 * p) {
    return Infeasible{"dualpipe-v needs two micro-batches per rank; " + std::to_string(m) + " on " + std::to_string(p) +
                      " ranks are too few; nearest: " + std::to_string(2 * p)};
  }
  Schedule schedule;
  for (int rank = 0; rank < p; ++rank) {
    schedule.orders.push_back(Order(rank, p, m, {rank, 0, 0}, {2 * p - 1 - rank, 0, 0}).take());
  }
  return schedule;
}

} // namespace stagecraft
