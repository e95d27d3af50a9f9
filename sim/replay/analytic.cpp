// The recurrence: start = max(device free, last input arrived), evaluated in whatever order readiness allows.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <stdexcept>

#include "sim/replay/replay.hpp"

namespace stagecraft {
namespace {

class Recurrence {
public:
  Recurrence(const TaskGraph& graph, int iterations) : graph_(graph), tasks_(graph.tasks()), iterations_(iterations) {
    const std::size_t executed = static_cast<std::size_t>(tasks_) * iterations;
    timeline_.iterations = iterations;
    timeline_.start.assign(executed, 0.0); // until a task starts, the latest arrival of its inputs
    timeline_.finish.resize(executed);
    waits_.reserve(executed);
    for (int i = 0; i < iterations; ++i) {
      waits_.insert(waits_.end(), graph.waits.begin(), graph.waits.end());
    }
    cursor_.assign(graph.devices.size(), {0, 0});
    free_.assign(graph.devices.size(), 0.0);
  }

  Timeline run() {
    for (std::size_t device = 0; device < graph_.devices.size(); ++device) {
      advance(device);
      while (!woken_.empty()) {
        const std::int32_t next = woken_.back();
        woken_.pop_back();
        advance(next);
      }
    }
    for (const Cursor& cursor : cursor_) {
      if (cursor.iteration < iterations_) {
        throw std::runtime_error("the replay stopped with tasks waiting for each other");
      }
    }
    return std::move(timeline_);
  }

private:
  struct Cursor {
    std::int32_t iteration, position;
  };

  std::size_t base_of(const Cursor& cursor) const { return static_cast<std::size_t>(cursor.iteration) * tasks_; }

  // Runs the device's program as far as inputs allow.
  void advance(std::size_t device) {
    const auto program = graph_.program_of(device);
    Cursor& cursor = cursor_[device];
    double free = free_[device];
    while (cursor.iteration < iterations_) {
      const std::size_t base = base_of(cursor);
      const TaskId task = program[cursor.position];
      if (waits_[base + task] > 0) {
        break;
      }
      double& start = timeline_.start[base + task];
      start = std::max(start, free);
      free = start + graph_.works[graph_.work[task]].seconds.value;
      timeline_.finish[base + task] = free;
      if (++cursor.position == static_cast<std::int32_t>(program.size())) {
        cursor = {cursor.iteration + 1, 0};
      }
      release(base, task);
    }
    free_[device] = free;
  }

  // Passes a finish on to all successors; transfers and joins among them finish at once.
  void release(std::size_t base, TaskId first) {
    pending_.push_back(first);
    while (!pending_.empty()) {
      const TaskId task = pending_.back();
      pending_.pop_back();
      const double finish = timeline_.finish[base + task];
      for (const TaskId next : graph_.successors_of(task)) {
        double& arrival = timeline_.start[base + next];
        arrival = std::max(arrival, finish);
        if (--waits_[base + next] > 0) {
          continue;
        }
        const Work& work = graph_.works[graph_.work[next]];
        if (work.computes()) {
          wake(base, next, work.device);
        } else {
          timeline_.finish[base + next] = arrival + work.seconds.value;
          pending_.push_back(next);
        }
      }
    }
  }

  void wake(std::size_t base, TaskId task, std::int32_t device) {
    const Cursor& cursor = cursor_[device];
    if (cursor.iteration < iterations_ && base_of(cursor) == base &&
        graph_.program_of(device)[cursor.position] == task) {
      woken_.push_back(device);
    }
  }

  const TaskGraph& graph_;
  int tasks_, iterations_;
  Timeline timeline_;
  std::vector<std::int32_t> waits_;
  std::vector<Cursor> cursor_;
  std::vector<double> free_;
  std::vector<TaskId> pending_;
  std::vector<std::int32_t> woken_;
};

} // namespace

std::vector<Timeline> replay_analytic(const Platform& /*platform*/, std::span<const ReplayRequest> requests) {
  std::vector<Timeline> timelines;
  for (const ReplayRequest& request : requests) {
    timelines.push_back(Recurrence(*request.graph, request.iterations).run());
  }
  return timelines;
}

} // namespace stagecraft
