// The reference that engines are held to: an event loop of its own over a schedule's orders, sharing no code with them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <queue>
#include <set>
#include <tuple>

#include "tests/schedule/pipelines.hpp"

namespace stagecraft::test {

/// Time goes from event to event; at each one a rank looks whether its next item may start: one action, or several that
/// are fused and start together, or an optimiser step.
class EventLoop {
public:
  EventLoop(const Pipeline& pipeline, const Schedule& schedule, bool barrier)
      : pipeline_(pipeline), schedule_(schedule), barrier_(barrier && schedule.flushes), ranks_(schedule.orders.size()),
        programs_(ranks_), at_(ranks_, 0), free_(ranks_, 0.0), finish_(ranks_) {}

  /// Per rank the finish of every action and of each stage's optimiser step, iteration after iteration.
  std::vector<std::vector<double>> run(int iterations) {
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      write_program(rank, iterations);
      events_.emplace(0.0, rank);
    }
    while (!events_.empty()) {
      const auto [now, rank] = events_.top();
      events_.pop();
      step(now, rank);
    }
    return finish_;
  }

  /// When the last rank has done an iteration's work, its optimiser steps aside.
  double end(int iteration) const { return last_end_.at(iteration); }

private:
  using Key = std::tuple<int, TaskKind, int, int>; // iteration, kind, micro-batch, stage
  struct Item {
    int iteration = 0;
    std::vector<Action> actions; // none: the optimiser step of `stage`
    int stage = 0;
  };

  // Where iterations overlap, those of later ones come along rounds before their own.
  void write_program(std::size_t rank, int iterations) {
    int ahead = 0;
    std::set<int> stages;
    for (const Action& action : schedule_.orders[rank]) {
      const int m = action.micro_batch % schedule_.micro_batches;
      ahead = std::max(ahead, action.micro_batch / schedule_.micro_batches);
      stages.insert(action.stage);
      home_[{m, action.stage}] = rank;
    }
    for (int round = -ahead; round < iterations; ++round) {
      for (Action action : schedule_.orders[rank]) {
        const int iteration = round + action.micro_batch / schedule_.micro_batches;
        if (iteration >= 0 && iteration < iterations) {
          action.micro_batch %= schedule_.micro_batches;
          add(programs_[rank], iteration, action);
          ++left_[iteration];
        }
      }
      for (const int stage : stages) {
        if (round >= 0 && !schedule_.steps_each_micro_batch) {
          programs_[rank].push_back({round, {}, stage});
        }
      }
    }
  }
  void add(std::vector<Item>& program, int iteration, const Action& action) const {
    if (action.fused) {
      program.back().actions.push_back(action);
    } else {
      program.push_back({iteration, {action}, action.stage});
    }
    const TaskKind last = schedule_.splits_backward ? TaskKind::weight : TaskKind::backward;
    if (schedule_.steps_each_micro_batch && action.kind == last) {
      program.push_back({iteration, {}, action.stage});
    }
  }

  double delay(int m, int from, int to) const {
    const double bytes = pipeline_.bytes.empty() ? 0 : pipeline_.bytes[std::min(from, to)];
    return home_.at({m, from}) == home_.at({m, to}) ? 0 : pipeline_.latency + bytes / pipeline_.bandwidth;
  }
  bool ready(int iteration, const Action& action, double now) const {
    const int from = action.stage + (action.kind == TaskKind::forward ? -1 : 1);
    if (action.kind > TaskKind::backward || from < 0 || from == schedule_.stages) {
      return true;
    }
    const auto found = done_.find({iteration, action.kind, action.micro_batch, from});
    return found != done_.end() && found->second + delay(action.micro_batch, from, action.stage) <= now;
  }
  double seconds(const Action& action) const {
    const StageTimes& times = pipeline_.stages[action.stage];
    return action.kind == TaskKind::forward    ? times.forward
           : action.kind == TaskKind::weight   ? times.weight
           : action.kind == TaskKind::backward ? times.input + (schedule_.splits_backward ? 0 : times.weight)
                                               : times.recompute;
  }

  void step(double now, std::size_t rank) {
    if (now < free_[rank] || at_[rank] == programs_[rank].size()) {
      return;
    }
    const Item& item = programs_[rank][at_[rank]];
    if (item.actions.empty()) {
      if (!barrier_ || left_[item.iteration] == 0) {
        take(rank, now, pipeline_.stages[item.stage].optimizer, 1);
      }
      return;
    }
    double time = 0;
    bool forward = false;
    for (const Action& action : item.actions) {
      if (!ready(item.iteration, action, now)) {
        return; // the arrival will wake the rank
      }
      time += seconds(action);
      forward = forward || action.kind == TaskKind::forward;
    }
    const double share = forward && item.actions.size() > 1 ? pipeline_.fused : 1;
    finish_item(item, take(rank, now, time * share, item.actions.size()));
  }

  void finish_item(const Item& item, double end) {
    for (const Action& action : item.actions) {
      done_[{item.iteration, action.kind, action.micro_batch, action.stage}] = end;
      const int next = action.stage + (action.kind == TaskKind::forward ? 1 : -1);
      if (action.kind <= TaskKind::backward && next >= 0 && next < schedule_.stages) {
        events_.emplace(end + delay(action.micro_batch, action.stage, next), home_.at({action.micro_batch, next}));
      }
    }
    last_end_[item.iteration] = std::max(last_end_[item.iteration], end);
    if ((left_[item.iteration] -= static_cast<int>(item.actions.size())) == 0) {
      for (std::size_t other = 0; other < ranks_; ++other) {
        free_[other] = barrier_ ? std::max(free_[other], last_end_[item.iteration]) : free_[other];
        events_.emplace(free_[other], other);
      }
    }
  }

  double take(std::size_t rank, double now, double seconds, std::size_t tasks) {
    ++at_[rank];
    free_[rank] = now + seconds;
    finish_[rank].insert(finish_[rank].end(), tasks, free_[rank]);
    events_.emplace(free_[rank], rank);
    return free_[rank];
  }

  const Pipeline& pipeline_;
  const Schedule& schedule_;
  bool barrier_;
  std::size_t ranks_;
  std::vector<std::vector<Item>> programs_;
  std::map<std::pair<int, int>, std::size_t> home_; // of a micro-batch and stage
  std::vector<std::size_t> at_;
  std::vector<double> free_;
  std::vector<std::vector<double>> finish_;
  std::map<Key, double> done_;
  std::map<int, int> left_; // actions of an iteration
  std::map<int, double> last_end_;
  std::priority_queue<std::pair<double, std::size_t>, std::vector<std::pair<double, std::size_t>>, std::greater<>>
      events_;
};

/// From empty until the last rank has done its work, optimiser steps aside.
inline double makespan_of(const Pipeline& pipeline, const Schedule& schedule) {
  EventLoop loop(pipeline, schedule, true);
  loop.run(1);
  return loop.end(0);
}

/// Of the steady state, where every stage steps alone: between iterations far from the first and from the last, whose
/// ranks no later work holds up.
inline double period_of(const Pipeline& pipeline, const Schedule& schedule) {
  constexpr int kIterations = 12;
  EventLoop loop(pipeline, schedule, false);
  loop.run(kIterations);
  return loop.end(kIterations - 4) - loop.end(kIterations - 5);
}

} // namespace stagecraft::test
