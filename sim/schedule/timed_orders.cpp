// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/timed_orders.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/improves.hpp"

namespace stagecraft {
namespace {
constexpr int kMostIterations = 24; // until the period is steady

double kept(const StageFigures& figures) { return figures.activation * figures.kept; }

} // namespace

TimedPipeline timed_pipeline(const ScheduleRequest& request, int chunks, StagePlacement placement) {
  TimedPipeline pipeline{.ranks = request.ranks, .micro_batches = request.micro_batches};
  const int stages = request.ranks * chunks;
  pipeline.figures = request.figures;
  pipeline.figures.resize(stages);
  pipeline.hops = request.hops;
  pipeline.hops.resize(stages);
  pipeline.room = request.room;
  for (int s = 0; s < stages; ++s) {
    pipeline.home.push_back(rank_of(s, request.ranks, placement));
  }
  for (int s = 0; s < stages; ++s) {
    if (s + 1 == stages || pipeline.home[s] == pipeline.home[s + 1]) {
      pipeline.hops[s] = 0;
    }
  }
  if (pipeline.room.empty()) {
    pipeline.room.assign(request.ranks, 0.0);
    for (int s = 0; s < stages; ++s) {
      pipeline.room[pipeline.home[s]] += request.ranks * pipeline.figures[s].activation;
    }
  }
  for (double& room : pipeline.room) {
    room *= 1 + kTie;
  }
  return pipeline;
}

std::optional<Infeasible> too_many_to_order(const ScheduleRequest& request, std::string_view name) {
  constexpr std::int64_t kMost = 1'000'000; // ranks x micro-batches
  if (std::int64_t{request.ranks} * request.micro_batches <= kMost) {
    return std::nullopt;
  }
  return Infeasible{std::string(name) + " orders " + std::to_string(request.ranks) + " ranks x " +
                    std::to_string(request.micro_batches) + " micro-batches one by one; at most " +
                    std::to_string(kMost)};
}

std::optional<Infeasible> lacks_room(const TimedPipeline& pipeline) {
  std::vector<double> needed(pipeline.ranks, 0.0);
  for (int s = 0; s < pipeline.stages(); ++s) {
    needed[pipeline.home[s]] += pipeline.figures[s].activation;
  }
  for (int rank = 0; rank < pipeline.ranks; ++rank) {
    if (needed[rank] > pipeline.room[rank]) {
      return Infeasible{"rank " + std::to_string(rank) + " has no room for the activations of one micro-batch"};
    }
  }
  return std::nullopt;
}

TimedOrders::TimedOrders(const TimedPipeline& pipeline)
    : pipeline_(pipeline), stages_(pipeline.stages()), count_(3 * pipeline.figures.size(), 0),
      end_(count_.size() * pipeline.micro_batches, 0.0), free_(pipeline.ranks, 0.0), held_(free_), bubble_(free_),
      backwards_(pipeline.ranks), weights_(pipeline.ranks, 0), orders_(pipeline.ranks) {
  const std::size_t actions = static_cast<std::size_t>(pipeline.micro_batches) * stages_ / pipeline.ranks;
  for (int rank = 0; rank < pipeline.ranks; ++rank) {
    backwards_[rank].reserve(actions);
    orders_[rank].reserve(3 * actions);
  }
}

double TimedOrders::seconds(TaskKind kind, int stage) const {
  const StageFigures& figures = pipeline_.figures[stage];
  return kind == TaskKind::forward    ? figures.forward
         : kind == TaskKind::backward ? figures.backward_input
                                      : figures.backward_weight;
}

double TimedOrders::arrival(TaskKind kind, int stage) const {
  const bool forward = kind == TaskKind::forward;
  const int from = forward ? stage - 1 : stage + 1;
  if (from < 0 || from == stages_) {
    return 0;
  }
  const int micro_batch = placed(kind, stage);
  return micro_batch < placed(kind, from) ? end_[task(kind, from, micro_batch)] + pipeline_.hops[forward ? from : stage]
                                          : kInfinity;
}

bool TimedOrders::fits(int stage, int weights) const {
  const int rank = pipeline_.home[stage];
  double held = held_[rank] + pipeline_.figures[stage].activation;
  for (int i = 0; i < weights; ++i) {
    held -= kept(pipeline_.figures[pending_stage(rank, i)]);
  }
  return held <= pipeline_.room[rank];
}

void TimedOrders::place(TaskKind kind, int stage) {
  const int rank = pipeline_.home[stage];
  const StageFigures& figures = pipeline_.figures[stage];
  const double ready = kind == TaskKind::weight ? 0 : arrival(kind, stage);
  if (ready > free_[rank] && !orders_[rank].empty()) {
    bubble_[rank] += ready - free_[rank];
    worst_bubble_ = std::max(worst_bubble_, bubble_[rank]);
  }
  const int micro_batch = count_[index(kind, stage)]++;
  free_[rank] = std::max(free_[rank], ready) + seconds(kind, stage);
  end_[task(kind, stage, micro_batch)] = free_[rank];
  orders_[rank].push_back({kind, micro_batch, stage});
  if (kind == TaskKind::forward) {
    held_[rank] += figures.activation;
  } else if (kind == TaskKind::backward) {
    backwards_[rank].push_back(stage);
    held_[rank] -= figures.activation - kept(figures);
  } else {
    ++weights_[rank];
    held_[rank] -= kept(figures);
  }
}

void TimedOrders::make_room(int stage) {
  while (!fits(stage) && pending(pipeline_.home[stage]) > 0) {
    place_weight(pipeline_.home[stage]);
  }
}

void TimedOrders::fill(int rank, double arrival, double least_gap) {
  while (pending(rank) > 0 && free_[rank] + seconds(TaskKind::weight, pending_stage(rank)) <= arrival) {
    place_weight(rank);
  }
  if (pending(rank) > 0 && arrival - free_[rank] > least_gap) {
    place_weight(rank);
  }
}

Schedule TimedOrders::schedule() const {
  return {.stages = stages_, .micro_batches = pipeline_.micro_batches, .splits_backward = true, .orders = orders_};
}

namespace {

// One pass over all orders per iteration; `free_` goes on from iteration to iteration.
class Replay {
public:
  Replay(const TimedPipeline& pipeline, const Schedule& schedule)
      : pipeline_(pipeline), schedule_(schedule), stages_(pipeline.stages()), free(pipeline.ranks, 0.0),
        at_(pipeline.ranks, 0), end_(2 * pipeline.figures.size() * pipeline.micro_batches) {}

  bool iterate() {
    std::fill(at_.begin(), at_.end(), 0);
    std::fill(end_.begin(), end_.end(), kInfinity);
    std::size_t left = 0;
    for (const auto& order : schedule_.orders) {
      left += order.size();
    }
    for (std::size_t before = left + 1; left < before;) {
      before = left;
      for (int rank = 0; rank < pipeline_.ranks; ++rank) {
        left -= advance(rank);
      }
      for (int rank = pipeline_.ranks - 2; rank > 0; --rank) {
        left -= advance(rank);
      }
    }
    return left == 0;
  }

private:
  std::size_t task(const Action& action) const {
    return (static_cast<std::size_t>(action.kind) * stages_ + action.stage) * pipeline_.micro_batches +
           action.micro_batch;
  }

  double ready(const Action& action) const {
    const bool forward = action.kind == TaskKind::forward;
    const int from = forward ? action.stage - 1 : action.stage + 1;
    const bool local = action.kind == TaskKind::weight || from < 0 || from == stages_;
    return local ? 0
                 : end_[task({action.kind, action.micro_batch, from})] + pipeline_.hops[forward ? from : action.stage];
  }

  std::size_t advance(int rank) {
    const auto& order = schedule_.orders[rank];
    const std::size_t begin = at_[rank];
    for (; at_[rank] < order.size(); ++at_[rank]) {
      const Action& action = order[at_[rank]];
      const StageFigures& figures = pipeline_.figures[action.stage];
      const double from = std::max(free[rank], ready(action));
      if (from == kInfinity) {
        break;
      }
      const double whole = figures.backward_input + (schedule_.splits_backward ? 0 : figures.backward_weight);
      free[rank] = from + (action.kind == TaskKind::forward    ? figures.forward
                           : action.kind == TaskKind::backward ? whole
                                                               : figures.backward_weight);
      if (action.kind != TaskKind::weight) {
        end_[task(action)] = free[rank];
      }
    }
    return at_[rank] - begin;
  }

  const TimedPipeline& pipeline_;
  const Schedule& schedule_;
  int stages_;

public:
  std::vector<double> free; ///< [rank]: end of its last action

private:
  std::vector<std::size_t> at_;
  std::vector<double> end_; // [F or B, stage, micro-batch]
};

} // namespace

// From one iteration to the next, the rank that advances most bounds the period from above, the one that advances least
// from below (max-plus eigenvalue, Collatz–Wielandt).
OrderTimes order_times(const TimedPipeline& pipeline, const Schedule& schedule) {
  Replay replay(pipeline, schedule);
  if (!replay.iterate()) {
    return {kInfinity, kInfinity};
  }
  OrderTimes times{*std::max_element(replay.free.begin(), replay.free.end()), kInfinity};
  for (int i = 1; i < kMostIterations; ++i) {
    const std::vector<double> before = replay.free;
    replay.iterate();
    double least = kInfinity;
    double most = 0;
    for (std::size_t rank = 0; rank < before.size(); ++rank) {
      least = std::min(least, replay.free[rank] - before[rank]);
      most = std::max(most, replay.free[rank] - before[rank]);
    }
    times.period = std::min(times.period, most);
    if (most <= least * (1 + kTie)) {
      break;
    }
  }
  return times;
}

OrderTimes least_times(const TimedPipeline& pipeline) {
  const auto& figures = pipeline.figures;
  const int count = pipeline.micro_batches;
  OrderTimes least;
  std::vector<double> trips(figures.size()); // from the start of F until the gradient arrives
  double back = 0;                           // from the end of F
  for (int s = pipeline.stages() - 1; s >= 0; --s) {
    trips[s] = figures[s].forward + back;
    back += figures[s].forward + figures[s].backward_input + (s > 0 ? 2 * pipeline.hops[s - 1] : 0);
  }
  double fill = 0;
  double drain = 0;
  for (int s = 0; s < pipeline.stages(); ++s) {
    const StageFigures& stage = figures[s];
    const double both = count * (stage.forward + stage.backward_input);
    const double weights = count * stage.backward_weight;
    const double ahead = std::min<double>(count, std::floor(pipeline.room[s] / stage.activation));
    const double waits = std::max(0.0, trips[s] - ahead * stage.forward);
    const double use = stage.activation * (trips[s] + stage.backward_input) + kept(stage) * stage.backward_weight;
    least.period = std::max({least.period, waits + both + weights, count * use / pipeline.room[s]});
    least.makespan = std::max(least.makespan, fill + waits + both + std::max(weights, drain));
    fill += stage.forward + pipeline.hops[s];
    drain += stage.backward_input + pipeline.hops[s];
  }
  return least;
}

bool fits_room(const TimedPipeline& pipeline, const Schedule& schedule) {
  for (int rank = 0; rank < pipeline.ranks; ++rank) {
    double held = 0;
    for (const Action& action : schedule.orders[rank]) {
      const StageFigures& figures = pipeline.figures[action.stage];
      const double after = schedule.splits_backward ? kept(figures) : 0; // B
      held += action.kind == TaskKind::forward    ? figures.activation
              : action.kind == TaskKind::backward ? after - figures.activation
              : action.kind == TaskKind::weight   ? -after
                                                  : 0;
      if (held > pipeline.room[rank]) {
        return false;
      }
    }
  }
  return true;
}

Schedule split_backward(Schedule schedule) {
  for (auto& order : schedule.orders) {
    std::vector<Action> split;
    split.reserve(order.size() * 3 / 2);
    for (const Action& action : order) {
      split.push_back(action);
      if (!schedule.splits_backward && action.kind == TaskKind::backward) {
        split.push_back({TaskKind::weight, action.micro_batch, action.stage});
      }
    }
    order = std::move(split);
  }
  schedule.splits_backward = true;
  return schedule;
}

} // namespace stagecraft
