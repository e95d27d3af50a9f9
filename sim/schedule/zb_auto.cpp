// A zero-bubble order made from the stages' times, under a memory cap: a greedy construction with three choices, whose
// eight combinations are all tried (Qi et al. 2023, "Zero Bubble Pipeline Parallelism", §3.1, as its public program
// does it).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/base/improves.hpp"
#include "sim/schedule/timed_orders.hpp"

namespace stagecraft {
namespace {

struct Choices {
  bool bubble_before_backward; ///< warm-up forwards must end, not only start, before the first B could come
  bool prefer_backward;        ///< no F that would keep a B waiting
  bool eager_weights;          ///< W fills every gap, not only those that would make the rank's bubble the worst
};

class ZeroBubbleOrders {
public:
  ZeroBubbleOrders(const TimedPipeline& pipeline, const Choices& choices)
      : pipeline_(pipeline), choices_(choices), orders_(pipeline), forwards_(pipeline.ranks, 0) {}

  Schedule run() {
    warm_up();
    for (int round = 1; round < pipeline_.micro_batches; ++round) {
      choose_forwards();
      for (int s = 0; s < pipeline_.ranks; ++s) {
        if (forwards_[s] > 0) {
          orders_.make_room(s);
          place(TaskKind::forward, s);
        }
      }
      for (int s = pipeline_.ranks - 1; s >= 0; --s) {
        if (s == 0 && orders_.placed(TaskKind::forward, 0) == pipeline_.micro_batches) {
          flush(0); // nothing is gained by waiting: no other rank needs rank 0 any more
        }
        place(TaskKind::backward, s);
      }
    }
    for (int s = 0; s < pipeline_.ranks; ++s) {
      flush(s);
    }
    return orders_.schedule();
  }

private:
  double seconds(TaskKind kind, int stage) const { return orders_.seconds(kind, stage); }

  void place(TaskKind kind, int stage) {
    orders_.fill(stage, orders_.arrival(kind, stage), choices_.eager_weights ? 0 : orders_.slack(stage));
    orders_.place(kind, stage);
  }

  void flush(int stage) {
    while (orders_.pending(stage) > 0) {
      orders_.place_weight(stage);
    }
  }

  // Places one F per stage, and more while the first B is still to come and room is left, but no more than on the stage
  // before; then the first B of each stage.
  void warm_up() {
    for (int s = 0; s < pipeline_.ranks; ++s) {
      orders_.place(TaskKind::forward, s);
    }
    double gradient = 0; // when the first B could come to the stage
    for (int s = pipeline_.ranks - 1; s >= 0; --s) {
      const double f = seconds(TaskKind::forward, s);
      const double a = pipeline_.figures[s].activation;
      double now = orders_.free_at(s);
      while (s + 1 < pipeline_.ranks && 1 + forwards_[s] < pipeline_.micro_batches &&
             (forwards_[s] + 2) * a <= pipeline_.room[s] &&
             (choices_.bubble_before_backward ? now + f <= gradient : now < gradient)) {
        ++forwards_[s];
        now += f;
      }
      gradient = std::max(now, gradient) + seconds(TaskKind::backward, s) + (s > 0 ? pipeline_.hops[s - 1] : 0);
    }
    for (int s = 0; s < pipeline_.ranks; ++s) {
      while (s > 0 && forwards_[s] > 0 && forwards_[s] >= forwards_[s - 1] &&
             1 + forwards_[s] < pipeline_.micro_batches) {
        --forwards_[s];
      }
      forwards_[s] = s > 0 ? std::min(forwards_[s], forwards_[s - 1]) : forwards_[s];
      for (int i = 0; i < forwards_[s]; ++i) {
        orders_.place(TaskKind::forward, s);
      }
    }
    for (int s = pipeline_.ranks - 1; s >= 0; --s) {
      orders_.place(TaskKind::backward, s);
    }
  }

  // Chooses the stages that run a forward in this round: a stage runs none if the next stage runs none.
  void choose_forwards() {
    int wanted = 1;
    for (int s = pipeline_.ranks - 1; s >= 0; --s) {
      const bool left = orders_.placed(TaskKind::forward, s) < pipeline_.micro_batches;
      wanted = std::min(wanted, left && !waits_for_backward(s) && orders_.fits(s, orders_.pending(s)) ? 1 : 0);
      forwards_[s] = wanted;
    }
  }

  // Whether the stage is far enough ahead of the next one that it should wait for its gradient instead of running a
  // forward.
  bool waits_for_backward(int s) const {
    if (!choices_.prefer_backward || s + 1 == pipeline_.ranks ||
        orders_.placed(TaskKind::forward, s) < orders_.placed(TaskKind::forward, s + 1) + 2) {
      return false;
    }
    const double gradient = orders_.free_at(s + 1) + seconds(TaskKind::forward, s + 1) +
                            seconds(TaskKind::backward, s + 1) + pipeline_.hops[s];
    const double now = orders_.free_at(s);
    if (now >= gradient) {
      return true;
    }
    int weights = 0; // W that must run first to free memory
    while (weights < orders_.pending(s) && !orders_.fits(s, weights)) {
      ++weights;
    }
    return now + seconds(TaskKind::forward, s) + weights * seconds(TaskKind::weight, s) > gradient &&
           gradient - now <= orders_.slack(s);
  }

  const TimedPipeline& pipeline_;
  const Choices choices_;
  TimedOrders orders_;
  std::vector<int> forwards_; // [stage]: to run next
};

bool better(const OrderTimes& one, const OrderTimes& other) {
  return improves(one.period, other.period) ||
         (!improves(other.period, one.period) && improves(one.makespan, other.makespan));
}

Schedule best_greedy(const TimedPipeline& pipeline) {
  Schedule best;
  OrderTimes best_times;
  for (int i = 0; i < 8; ++i) {
    Schedule schedule = ZeroBubbleOrders(pipeline, {(i & 4) == 0, (i & 2) == 0, (i & 1) == 0}).run();
    const OrderTimes times = order_times(pipeline, schedule);
    if (i == 0 || better(times, best_times)) {
      best = std::move(schedule);
      best_times = times;
    }
  }
  return best;
}

} // namespace

ScheduleResult make_zb_auto(const ScheduleRequest& request) {
  if (auto reason = too_many_to_order(request, "zb-auto")) {
    return *reason;
  }
  const TimedPipeline pipeline = timed_pipeline(request, 1, StagePlacement::interleaved);
  if (const auto why = lacks_room(pipeline)) {
    return *why;
  }
  const auto judge = [&](const Schedule& schedule) {
    return request.evaluate ? OrderTimes{0, request.evaluate(schedule)} : order_times(pipeline, schedule);
  };
  Schedule best = best_greedy(pipeline);
  OrderTimes best_times = judge(best);
  for (const ScheduleRow& row : schedules()) {
    if (row.name != "zb-h1" && row.name != "zb-h2") {
      continue;
    }
    ScheduleResult made = make_schedule(row, request);
    Schedule* hand = std::get_if<Schedule>(&made);
    if (hand == nullptr || !hand->flushes || !fits_room(pipeline, *hand)) {
      continue;
    }
    if (const OrderTimes times = judge(*hand); better(times, best_times)) {
      best = std::move(*hand);
      best_times = times;
    }
  }
  return best;
}

} // namespace stagecraft
