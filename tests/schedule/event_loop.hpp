// The reference for the engines: an event loop over a schedule's orders that shares no code with them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <map>
#include <queue>
#include <set>
#include <tuple>

#include "tests/schedule/pipelines.hpp"

namespace stagecraft::test {

/// Advances from event to event. At each event a rank checks whether its next item may start: one action, several fused
/// ones that start together, or an optimiser step.
class EventLoop {
public:
  /// With ordered sends, the bytes from one rank to another flow one after another; without, they may flow at the same
  /// time.
  EventLoop(const Pipeline& pipeline, const Schedule& schedule, bool barrier, bool ordered_sends = false)
      : pipeline_(pipeline), schedule_(schedule), barrier_(barrier && schedule.flushes), ordered_sends_(ordered_sends),
        ranks_(schedule.orders.size()), programs_(ranks_), at_(ranks_, 0), free_(ranks_, 0.0), finish_(ranks_) {}

  /// For each rank the finish of everything in its order and of its stages' optimiser steps, one round after another.
  /// Where iterations overlap, what rounds before the first have made is there from the beginning.
  std::vector<std::vector<double>> run(int rounds) {
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      write_program(rank, rounds);
      events_.emplace(0.0, rank);
    }
    while (!events_.empty()) {
      const auto [now, rank] = events_.top();
      events_.pop();
      step(now, rank);
    }
    return finish_;
  }

  /// When the last rank has gone through its order round + 1 times, without optimiser steps.
  double end(int round) const { return last_end_.at(round); }

private:
  // Of a pair that runs layer by layer the backward comes first.
  std::vector<Action> as_run(std::vector<Action> order) const {
    for (std::size_t second = 1; second < order.size() && schedule_.pairs_by_layers; ++second) {
      if (order[second].fused) {
        order[second - 1].fused = true;
        order[second].fused = false;
        std::swap(order[second - 1], order[second]);
      }
    }
    return order;
  }

  using Key = std::tuple<int, TaskKind, int, int>; // iteration, kind, micro-batch, stage
  struct Item {
    int round = 0, iteration = 0;
    std::size_t place = 0;       // index of its finish among those of the rank
    std::vector<Action> actions; // empty: the optimiser step of `stage`
    int stage = 0;
  };

  void write_program(std::size_t rank, int rounds) {
    const std::vector<Item> once = round_of(rank);
    std::size_t length = 0;
    for (const Item& item : once) {
      length += std::max<std::size_t>(1, item.actions.size());
    }
    finish_[rank].resize(length * rounds);
    for (int round = 0; round < rounds; ++round) {
      for (Item item : once) {
        item.round = round;
        item.place += round * length;
        for (const Action& action : item.actions) {
          ahead_[{action.kind, action.micro_batch, action.stage}] = item.iteration;
          home_[{action.micro_batch, action.stage}] = rank;
          homes_[action.stage].insert(rank);
          left_[{round, action.stage}] += completes(action) ? 1 : 0;
        }
        item.iteration += round;
        programs_[rank].push_back(std::move(item));
      }
    }
  }

  // The rank's order, each item with the iterations that it runs ahead.
  std::vector<Item> round_of(std::size_t rank) const {
    std::vector<Item> round;
    std::set<int> stages;
    std::size_t place = 0;
    const bool late = schedule_.name == "pipedream-2bw"; // its step comes before the first forward of the next round
    bool stepped = schedule_.steps_each_micro_batch;
    for (Action action : as_run(schedule_.orders[rank])) {
      const int ahead = action.micro_batch / schedule_.micro_batches;
      if (late && ahead > 0 && !stepped) {
        round.push_back({0, 0, place++, {}, action.stage});
        stepped = true;
      }
      action.micro_batch %= schedule_.micro_batches;
      stages.insert(action.stage);
      if (action.fused) {
        round.back().actions.push_back(action);
        ++place;
      } else {
        round.push_back({0, ahead, place++, {action}, action.stage});
      }
      if (schedule_.steps_each_micro_batch && action.kind == TaskKind::backward) {
        round.push_back({0, ahead, place++, {}, action.stage});
      }
    }
    for (const int stage : stages) { // lowest first
      if (!stepped) {
        round.push_back({0, 0, place++, {}, stage});
      }
    }
    return round;
  }

  static bool completes(const Action& action) {
    return action.kind == TaskKind::backward || action.kind == TaskKind::weight;
  }
  // When the output of a stage for a micro-batch, made at `made`, is at another stage.
  double arrival(double made, int m, int from, int to) {
    const std::pair channel{home_.at({m, from}), home_.at({m, to})};
    if (channel.first == channel.second) {
      return made;
    }
    const double flows = (pipeline_.bytes.empty() ? 0 : pipeline_.bytes[std::min(from, to)]) / pipeline_.bandwidth;
    double& sent = sent_[channel]; // when the last byte entered the connection
    const double entered = (ordered_sends_ ? std::max(made, sent) : made) + flows;
    sent = std::max(sent, entered);
    return entered + pipeline_.latency;
  }
  // Gradients have no bytes here, but go round the ranks of a stage twice.
  double reduction(int stage) const {
    return 2.0 * (static_cast<double>(homes_.at(stage).size()) - 1) * pipeline_.latency;
  }

  // The earliest time of a stage's step in a round; a step after each micro-batch only follows its backward.
  double gate(int round, int stage) const {
    const double never = std::numeric_limits<double>::infinity();
    double from = 0;
    for (int s = 0; s < schedule_.stages; ++s) {
      if (!schedule_.steps_each_micro_batch && (barrier_ || (s == stage && homes_.at(s).size() > 1))) {
        from = std::max(from, left_.at({round, s}) > 0 ? never : complete_.at({round, s}) + reduction(s));
      }
    }
    return from;
  }
  bool ready(int iteration, const Action& action, double now) const {
    const int from = action.stage + (action.kind == TaskKind::forward ? -1 : 1);
    if (action.kind > TaskKind::backward || from < 0 || from == schedule_.stages) {
      return true;
    }
    if (iteration < ahead_.at({action.kind, action.micro_batch, from})) {
      return true; // made before the first round
    }
    const auto found = arrival_.find({iteration, action.kind, action.micro_batch, from});
    return found != arrival_.end() && found->second <= now;
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
      if (gate(item.round, item.stage) <= now) {
        take(rank, now + pipeline_.stages[item.stage].optimizer);
        finish_[rank][item.place] = free_[rank];
      }
      return;
    }
    bool forward = false;
    for (const Action& action : item.actions) {
      if (!ready(item.iteration, action, now)) {
        return; // its arrival will wake the rank
      }
      forward = forward || action.kind == TaskKind::forward;
    }
    double end = now;
    for (std::size_t n = 0; n < item.actions.size(); ++n) {
      end += seconds(item.actions[n]) * (forward && item.actions.size() > 1 ? pipeline_.fused : 1);
      finish_[rank][item.place + n] = end;
    }
    take(rank, end);
    finish_item(item, end);
  }

  // Of tensors sent at the same time, the one across the lower boundary goes first, an activation before a gradient.
  void send(const Item& item, double end) {
    std::map<std::pair<int, TaskKind>, Action> leaving;
    for (const Action& action : item.actions) {
      const int next = action.stage + (action.kind == TaskKind::forward ? 1 : -1);
      if (action.kind <= TaskKind::backward && next >= 0 && next < schedule_.stages) {
        leaving[{std::min(action.stage, next), action.kind}] = action;
      }
    }
    for (const auto& [order, action] : leaving) {
      const int next = action.stage + (action.kind == TaskKind::forward ? 1 : -1);
      const double there = arrival(end, action.micro_batch, action.stage, next);
      arrival_[{item.iteration, action.kind, action.micro_batch, action.stage}] = there;
      events_.emplace(there, home_.at({action.micro_batch, next}));
    }
  }

  void finish_item(const Item& item, double end) {
    send(item, end);
    for (const Action& action : item.actions) {
      double& complete = complete_[{item.round, action.stage}];
      if (completes(action)) {
        complete = std::max(complete, end);
        if (--left_[{item.round, action.stage}] == 0) {
          for (std::size_t rank = 0; rank < ranks_; ++rank) {
            events_.emplace(complete + reduction(action.stage), rank);
          }
        }
      }
    }
    last_end_[item.round] = std::max(last_end_[item.round], end);
  }

  void take(std::size_t rank, double end) {
    ++at_[rank];
    free_[rank] = end;
    events_.emplace(end, rank);
  }

  const Pipeline& pipeline_;
  const Schedule& schedule_;
  bool barrier_, ordered_sends_;
  std::size_t ranks_;
  std::vector<std::vector<Item>> programs_;
  std::vector<std::size_t> at_;
  std::vector<double> free_;
  std::vector<std::vector<double>> finish_;
  std::map<std::pair<int, int>, std::size_t> home_;            // of a micro-batch and stage
  std::map<int, std::set<std::size_t>> homes_;                 // of a stage
  std::map<std::tuple<TaskKind, int, int>, int> ahead_;        // iterations by which a task runs before its own
  std::map<Key, double> arrival_;                              // of what a task made, where it goes
  std::map<std::pair<std::size_t, std::size_t>, double> sent_; // [sender and receiver]
  std::map<std::pair<int, int>, int> left_;                    // backward tasks of a round and stage
  std::map<std::pair<int, int>, double> complete_;             // when they are all done
  std::map<int, double> last_end_;
  std::priority_queue<std::pair<double, std::size_t>, std::vector<std::pair<double, std::size_t>>, std::greater<>>
      events_;
};

/// Time from an empty pipeline until the last rank has done its work, without optimiser steps.
inline double makespan_of(const Pipeline& pipeline, const Schedule& schedule) {
  const Schedule alone = from_empty(schedule);
  EventLoop loop(pipeline, alone, false);
  loop.run(1);
  return loop.end(0);
}

/// Period of the steady state, with a step of each stage on its own.
inline double period_of(const Pipeline& pipeline, const Schedule& schedule) {
  constexpr int kRounds = 12;
  EventLoop loop(pipeline, schedule, false);
  loop.run(kRounds);
  return loop.end(kRounds - 1) - loop.end(kRounds - 2);
}

} // namespace stagecraft::test
