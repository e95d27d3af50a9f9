// The reference that engines are held to: an event loop of its own over a schedule's orders, sharing no code with them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <queue>
#include <tuple>

#include "tests/schedule/pipelines.hpp"

namespace stagecraft::test {

/// Time goes from event to event; at each one a rank looks whether its next action may start.
class EventLoop {
public:
  EventLoop(const Pipeline& pipeline, const Schedule& schedule, bool barrier)
      : pipeline_(pipeline), schedule_(schedule), barrier_(barrier), ranks_(schedule.orders.size()), at_(ranks_, 0),
        free_(ranks_, 0.0), finish_(ranks_) {}

  /// Per rank the finish of every action, then of each stage's optimiser step, iteration after iteration.
  std::vector<std::vector<double>> run(int iterations) {
    iterations_ = iterations;
    for (int rank = 0; rank < static_cast<int>(ranks_); ++rank) {
      events_.emplace(0.0, rank);
    }
    while (!events_.empty()) {
      const auto [now, rank] = events_.top();
      events_.pop();
      step(now, rank);
    }
    return finish_;
  }

private:
  using Key = std::tuple<int, TaskKind, int, int>; // iteration, kind, micro-batch, stage

  int home(int stage) const { return stage % pipeline_.ranks; }
  double delay(int from, int to) const {
    const double bytes = pipeline_.bytes.empty() ? 0 : pipeline_.bytes[std::min(from, to)];
    return home(from) == home(to) ? 0 : pipeline_.latency + bytes / pipeline_.bandwidth;
  }
  bool arrived(const Key& key, int at_stage, double now) const {
    const auto found = done_.find(key);
    return found != done_.end() && found->second + delay(std::get<3>(key), at_stage) <= now;
  }

  void step(double now, int rank) {
    const auto& order = schedule_.orders[rank];
    const std::size_t length = order.size() + pipeline_.stages.size() / ranks_;
    const int iteration = static_cast<int>(at_[rank] / length);
    const std::size_t position = at_[rank] % length;
    if (now < free_[rank] || iteration == iterations_) {
      return;
    }
    if (position >= order.size()) { // optimiser steps, lowest stage first
      const int stage = static_cast<int>(position - order.size()) * pipeline_.ranks + rank;
      if (!barrier_ || ended_[iteration] == static_cast<int>(ranks_)) {
        take(rank, now, pipeline_.stages[stage].optimizer);
      }
      return;
    }
    const auto [kind, m, s] = std::tuple(order[position].kind, order[position].micro_batch, order[position].stage);
    const bool last = s + 1 == static_cast<int>(pipeline_.stages.size());
    const bool ready = kind == TaskKind::forward    ? s == 0 || arrived({iteration, kind, m, s - 1}, s, now)
                       : kind == TaskKind::backward ? last || arrived({iteration, kind, m, s + 1}, s, now)
                                                    : true;
    if (!ready) {
      return; // the arrival will wake the rank
    }
    const StageTimes& times = pipeline_.stages[s];
    const double whole = schedule_.splits_backward ? times.input : times.input + times.weight;
    const double end = take(rank, now,
                            kind == TaskKind::forward    ? times.forward
                            : kind == TaskKind::backward ? whole
                            : kind == TaskKind::weight   ? times.weight
                                                         : times.recompute);
    done_[{iteration, kind, m, s}] = end;
    if (kind == TaskKind::forward && !last) {
      events_.emplace(end + delay(s, s + 1), home(s + 1));
    } else if (kind == TaskKind::backward && s > 0) {
      events_.emplace(end + delay(s, s - 1), home(s - 1));
    }
    if (position + 1 == order.size()) {
      last_end_[iteration] = std::max(last_end_[iteration], end);
      if (++ended_[iteration] == static_cast<int>(ranks_)) {
        for (int other = 0; other < static_cast<int>(ranks_); ++other) {
          free_[other] = barrier_ ? std::max(free_[other], last_end_[iteration]) : free_[other];
          events_.emplace(free_[other], other);
        }
      }
    }
  }

  double take(int rank, double now, double seconds) {
    ++at_[rank];
    free_[rank] = now + seconds;
    finish_[rank].push_back(free_[rank]);
    events_.emplace(free_[rank], rank);
    return free_[rank];
  }

  const Pipeline& pipeline_;
  const Schedule& schedule_;
  bool barrier_;
  int iterations_ = 1;
  std::size_t ranks_;
  std::vector<std::size_t> at_;
  std::vector<double> free_;
  std::vector<std::vector<double>> finish_;
  std::map<Key, double> done_;
  std::map<int, int> ended_;
  std::map<int, double> last_end_;
  std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>> events_;
};

} // namespace stagecraft::test
