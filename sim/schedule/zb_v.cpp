// ZB-V: two stages per rank, placed in a V, zero bubble with the memory of 1F1B (Qi et al. 2024, "Pipeline Parallelism
// with Controllable Memory"), by the greedy construction of its public program.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "sim/base/improves.hpp"
#include "sim/schedule/timed_orders.hpp"

namespace stagecraft {
namespace {

// Rank r holds stage r, where data goes down, and stage 2P-1-r, where it comes up again; gradients go the other way.
class ZeroBubbleVOrders {
public:
  ZeroBubbleVOrders(const TimedPipeline& pipeline, bool fill_forward, bool fill_backward,
                    const std::vector<double>& accepted)
      : ranks_(pipeline.ranks), micro_batches_(pipeline.micro_batches), fill_forward_(fill_forward),
        fill_backward_(fill_backward), accepted_(accepted), orders_(pipeline), steps_(pipeline.ranks) {
    most_accepted_ = *std::max_element(accepted.begin(), accepted.end());
  }

  TimedOrders run() {
    reach_first_gradient();
    alternate_chunks();
    while (round()) {
    }
    for (int rank = 0; rank < ranks_; ++rank) {
      while (orders_.pending(rank) > 0) {
        orders_.place_weight(rank);
      }
    }
    return orders_;
  }

private:
  int up(int rank) const { return 2 * ranks_ - 1 - rank; }
  int done(TaskKind kind, int stage) const { return orders_.placed(kind, stage); }
  bool can(TaskKind kind, int stage) const {
    return done(kind, stage) < micro_batches_ && orders_.arrival(kind, stage) != kInfinity &&
           (kind == TaskKind::forward || done(kind, stage) < done(TaskKind::forward, stage));
  }

  // Runs the first micro-batch's forwards down and up again. Until it is back at a rank, more micro-batches go down, as
  // long as they end in time and leave room for their forwards up.
  void reach_first_gradient() {
    for (int rank = 0; rank < ranks_; ++rank) {
      orders_.place(TaskKind::forward, rank);
    }
    for (int rank = ranks_ - 1; rank >= 0; --rank) {
      while (orders_.held(rank) + 2 + 2 * rank <= 2 * ranks_ && done(TaskKind::forward, rank) < micro_batches_ &&
             orders_.free_at(rank) + orders_.seconds(TaskKind::forward, rank) <=
                 orders_.arrival(TaskKind::forward, up(rank))) {
        for (int r = 0; r <= rank; ++r) {
          orders_.place(TaskKind::forward, r);
        }
      }
      orders_.place(TaskKind::forward, up(rank));
    }
  }

  // Runs forwards down and up in turn, until each rank has as many as the one before it.
  void alternate_chunks() {
    bool upward = false;
    const auto forwards = [&](int rank) { return done(TaskKind::forward, rank) + done(TaskKind::forward, up(rank)); };
    for (int rank = 1; rank < ranks_; ++rank) {
      for (int idle = 0; idle < 2; upward = !upward) {
        const int ahead = done(TaskKind::forward, up(rank - 1));
        if (forwards(rank) >= forwards(rank - 1) &&
            (done(TaskKind::forward, up(rank)) > ahead || ahead >= micro_batches_)) {
          break;
        }
        ++idle;
        for (int r = ranks_ - 1; r >= rank; --r) {
          const int stage = upward ? up(r) : r;
          if (can(TaskKind::forward, stage) && orders_.fits(stage)) {
            orders_.place(TaskKind::forward, stage);
            idle = 0;
          }
        }
      }
    }
  }

  // One B and one F on each rank; false once nothing is left.
  bool round() {
    bool moved = false;
    for (int rank = 0; rank < ranks_; ++rank) {
      steps_[rank] = next_backward(rank);
    }
    for (int rank = ranks_ - 1; rank >= 0; --rank) {
      moved |= steps_[rank] == rank && backward(rank, rank);
    }
    for (int rank = 0; rank < ranks_; ++rank) {
      moved |= steps_[rank] != rank && backward(rank, up(rank));
    }
    for (int rank = 0; rank < ranks_; ++rank) {
      moved |= forward(rank);
    }
    return moved;
  }

  // The stage of a rank's next B: the lower one, whose gradients go to stage 0, if its gradient has arrived.
  int next_backward(int rank) const {
    const int micro_batch = done(TaskKind::backward, rank);
    const int behind = done(TaskKind::backward, up(rank));
    if (micro_batch >= behind) {
      return up(rank);
    }
    return rank + 1 == ranks_ || behind >= micro_batches_ || micro_batch < done(TaskKind::backward, rank + 1)
               ? rank
               : up(rank);
  }

  bool backward(int rank, int stage) {
    if (!can(TaskKind::backward, stage)) {
      return false;
    }
    fill(rank, orders_.arrival(TaskKind::backward, stage), stage == rank || fill_backward_);
    orders_.place(TaskKind::backward, stage);
    return true;
  }

  bool forward(int rank) {
    const int stage =
        can(TaskKind::forward, up(rank)) && done(TaskKind::forward, up(rank)) < done(TaskKind::forward, rank) ? up(rank)
                                                                                                              : rank;
    if (!can(TaskKind::forward, stage)) {
      return false;
    }
    orders_.make_room(stage);
    if (!orders_.fits(stage)) {
      return false;
    }
    fill(rank, orders_.arrival(TaskKind::forward, stage), fill_forward_);
    orders_.place(TaskKind::forward, stage);
    return true;
  }

  void fill(int rank, double arrival, bool beyond) {
    const double worst = std::max(orders_.worst_bubble(), most_accepted_ - accepted_[rank]);
    orders_.fill(rank, arrival, beyond ? worst - orders_.bubble(rank) : kInfinity);
  }

  int ranks_, micro_batches_;
  bool fill_forward_, fill_backward_; // W fills a gap too short for it, if waiting would make the bubble the worst
  const std::vector<double>& accepted_;
  double most_accepted_ = 0;
  TimedOrders orders_;
  std::vector<int> steps_; // [rank]: stage of its next B
};

} // namespace

ScheduleResult make_zb_v(const ScheduleRequest& request) {
  if (auto reason = too_many_to_order(request, "zb-v")) {
    return *reason;
  }
  TimedPipeline pipeline = timed_pipeline(request, 2, StagePlacement::v_shaped);
  for (StageFigures& figures : pipeline.figures) {
    figures.activation = figures.kept = 1; // activations are counted, not weighed
  }
  pipeline.room.assign(request.ranks, 2.0 * request.ranks);
  Schedule best;
  double best_bubble = kInfinity;
  for (const bool fill_backward : {true, false}) {
    for (const bool fill_forward : {true, false}) {
      std::vector<double> accepted(request.ranks, 0.0); // bubbles of the pass before: no need to do better
      for (double last = kInfinity;;) {
        const TimedOrders orders = ZeroBubbleVOrders(pipeline, fill_forward, fill_backward, accepted).run();
        if (!(orders.worst_bubble() < last)) {
          break;
        }
        last = orders.worst_bubble();
        if (last < best_bubble) {
          best = orders.schedule();
          best_bubble = last;
        }
        for (int rank = 0; rank < request.ranks; ++rank) {
          accepted[rank] = orders.bubble(rank);
        }
      }
    }
  }
  return best;
}

} // namespace stagecraft
