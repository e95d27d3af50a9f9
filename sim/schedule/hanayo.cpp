// Hanayo: stages lie in a V over the ranks, so that micro-batches run over them in waves (Liu et al. 2023). With W
// waves a rank holds 2 W stages. The order is greedy, for equal stages whose backward takes twice as long as a forward.
// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {
namespace {

// Time advances in steps of one stage's forward. Every stage takes its micro-batches in order, so counts are enough.
class Waves {
public:
  Waves(int ranks, int chunks, int micro_batches)
      : ranks_(ranks), stages_(ranks * chunks), micro_batches_(micro_batches), forwards_(stages_), backwards_(stages_),
        running_(ranks), until_(ranks, 0), orders_(ranks) {
    for (auto& order : orders_) {
      order.reserve(static_cast<std::size_t>(micro_batches) * chunks * 2);
    }
  }

  std::vector<std::vector<Action>> run() {
    for (int now = 0; backwards_[0].done < micro_batches_; ++now) {
      for (int rank = 0; rank < ranks_; ++rank) {
        if (running_[rank] && until_[rank] == now) {
          ++(running_[rank]->kind == TaskKind::forward ? forwards_ : backwards_)[running_[rank]->stage].done;
          running_[rank].reset();
        }
      }
      for (int rank = 0; rank < ranks_; ++rank) {
        if (!running_[rank]) {
          start(rank, now);
        }
      }
    }
    return std::move(orders_);
  }

private:
  struct Count {
    int begun = 0, done = 0;
  };

  // Starts the next task of a rank: B before F, the oldest micro-batch first.
  void start(int rank, int now) {
    std::optional<Action> next = oldest(TaskKind::backward, rank);
    next = next ? next : oldest(TaskKind::forward, rank);
    if (next) {
      const bool forward = next->kind == TaskKind::forward;
      ++(forward ? forwards_ : backwards_)[next->stage].begun;
      orders_[rank].push_back(*next);
      running_[rank] = next;
      until_[rank] = now + (forward ? 1 : 2);
    }
  }

  std::optional<Action> oldest(TaskKind kind, int rank) const {
    std::optional<Action> best;
    for (int round = 0; round < stages_; round += ranks_) {
      const int stage =
          rank_of(round + rank, ranks_, StagePlacement::v_shaped) == rank ? round + rank : round + ranks_ - 1 - rank;
      const int m = (kind == TaskKind::forward ? forwards_ : backwards_)[stage].begun;
      if (m < arrived(kind, stage) && (!best || m < best->micro_batch)) {
        best = Action{kind, m, stage};
      }
    }
    return best;
  }

  int arrived(TaskKind kind, int stage) const {
    if (kind == TaskKind::forward) {
      return stage == 0 ? micro_batches_ : forwards_[stage - 1].done;
    }
    return stage + 1 == stages_ ? forwards_[stage].done : backwards_[stage + 1].done;
  }

  int ranks_, stages_, micro_batches_;
  std::vector<Count> forwards_, backwards_;    // [stage]
  std::vector<std::optional<Action>> running_; // [rank]
  std::vector<int> until_;                     // [rank]
  std::vector<std::vector<Action>> orders_;
};

} // namespace

ScheduleResult make_hanayo(const ScheduleRequest& request) {
  if (request.chunks % 2 != 0) {
    return Infeasible{"hanayo needs two stages per rank for each wave; " + std::to_string(request.chunks) +
                      " is odd; nearest: " + (request.chunks > 1 ? std::to_string(request.chunks - 1) + " or " : "") +
                      std::to_string(request.chunks + 1)};
  }
  Schedule schedule;
  schedule.orders = Waves(request.ranks, request.chunks, request.micro_batches).run();
  return schedule;
}

} // namespace stagecraft
