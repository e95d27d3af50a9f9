// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/contention.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/improves.hpp"
#include "sim/schedule/task_graph/unroll.hpp"

namespace stagecraft {
namespace {

class Contention {
public:
  Contention(const TaskGraph& graph, const TaskGraph& unrolled, std::span<const double> slowdowns)
      : graph_(graph), unrolled_(unrolled), slowdowns_(slowdowns), next_(unrolled.devices.size()) {}

  /// The duration of each task if it starts as in `timeline` while the other devices do what they do there.
  std::vector<Seconds> durations(const Timeline& timeline) {
    std::vector<Seconds> durations(timeline.start.size());
    for (std::size_t device = 0; device < next_.size(); ++device) {
      std::fill(next_.begin(), next_.end(), 0);
      for (const TaskId task : unrolled_.program_of(device)) {
        durations[task] = duration(timeline, device, task);
      }
    }
    return durations;
  }

private:
  std::int32_t work_of(TaskId task) const { return graph_.work[task % graph_.tasks()]; }

  // A task ends when the integral of its speed since its start equals its work.
  Seconds duration(const Timeline& timeline, std::size_t device, TaskId task) {
    double time = timeline.start[task];
    double left = unrolled_.works[task].seconds.value;
    for (std::size_t other = 0; other < next_.size(); ++other) { // starts ascend along a program
      pass(timeline, other, time, next_[other]);
    }
    std::vector<std::size_t> next = next_;
    while (left > 0) {
      double slowdown = 1, until = kInfinity;
      for (std::size_t other = 0; other < next.size(); ++other) {
        if (other != device) {
          meet(timeline, other, time, work_of(task), next[other], slowdown, until);
        }
      }
      const double done = std::min(left, (until - time) / slowdown);
      left -= done;
      time = left > 0 ? until : time + done * slowdown;
    }
    return Seconds{time - timeline.start[task]};
  }

  // Moves `at` beyond the tasks that have ended by `time`.
  void pass(const Timeline& timeline, std::size_t other, double time, std::size_t& at) const {
    const auto program = unrolled_.program_of(other);
    while (at < program.size() && timeline.finish[program[at]] <= time) {
      ++at;
    }
  }

  // Looks at what another device does at `time`: multiplies its factor into `slowdown`, and lowers `until` to the time
  // when that changes.
  void meet(const Timeline& timeline, std::size_t other, double time, std::int32_t work, std::size_t& at,
            double& slowdown, double& until) const {
    pass(timeline, other, time, at);
    const auto program = unrolled_.program_of(other);
    if (at == program.size()) {
      return;
    }
    const TaskId beside = program[at];
    if (timeline.start[beside] > time) {
      until = std::min(until, timeline.start[beside]);
      return;
    }
    slowdown *= slowdowns_[static_cast<std::size_t>(work) * graph_.works.size() + work_of(beside)];
    until = std::min(until, timeline.finish[beside]);
  }

  const TaskGraph &graph_, &unrolled_;
  std::span<const double> slowdowns_;
  std::vector<std::size_t> next_; // [device]: its first task that may still be running
};

} // namespace

Timeline replay_contended(ReplayFunction engine, const Platform& platform, const TaskGraph& graph, int iterations,
                          std::span<const double> slowdowns) {
  constexpr double kSame = 1e-12; // seconds; times closer than this are equal
  const TaskGraph alone = unroll(graph, iterations);
  Contention contention(graph, alone, slowdowns);
  TaskGraph contended = alone;
  const ReplayRequest once{contended, platform};
  Timeline timeline = std::move(engine({&once, 1}).front());
  bool same = false;
  for (int round = 0; !same && round <= alone.tasks(); ++round) {
    const std::vector<Seconds> durations = contention.durations(timeline);
    same = true;
    for (TaskId task = 0; task < alone.tasks(); ++task) {
      if (alone.works[task].computes()) {
        same = same && std::abs((durations[task] - contended.works[task].seconds).value) <= kSame;
        contended.works[task].seconds = durations[task];
      }
    }
    timeline = std::move(engine({&once, 1}).front());
  }
  timeline.iterations = iterations;
  return timeline;
}

} // namespace stagecraft
