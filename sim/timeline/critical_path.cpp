// SPDX-License-Identifier: Apache-2.0
#include "sim/timeline/critical_path.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

/// Of each entry what it waited for, found by looking at everything that it could have waited for.
class Waits {
public:
  Waits(const TaskGraph& graph, const Timeline& timeline)
      : graph_(graph), timeline_(timeline), tasks_(static_cast<std::size_t>(graph.tasks())),
        last_(timeline.start.size()), arrival_(timeline.start.size(), -1.0) {
    for (std::size_t entry = 0; entry < last_.size(); ++entry) {
      last_[entry] = entry;
    }
  }

  std::vector<std::size_t> run() {
    for (std::size_t device = 0; device < graph_.devices.size(); ++device) {
      follow_program(device);
    }
    for (std::size_t entry = 0; entry < last_.size(); ++entry) {
      follow_edges(entry);
    }
    return std::move(last_);
  }

private:
  void arrive(std::size_t from, std::size_t to, double time) {
    if (to < last_.size() && time > arrival_[to]) {
      arrival_[to] = time;
      last_[to] = from;
    }
  }

  void follow_program(std::size_t device) {
    const auto program = graph_.program_of(device);
    for (int iteration = 0; iteration < timeline_.iterations; ++iteration) {
      const std::size_t base = static_cast<std::size_t>(iteration) * tasks_;
      for (std::size_t at = 0; at < program.size(); ++at) {
        const std::size_t entry = base + program[at];
        const std::size_t next = at + 1 < program.size() ? base + program[at + 1] : base + tasks_ + program.front();
        arrive(entry, next, timeline_.finish[entry]);
      }
    }
  }

  void follow_edges(std::size_t entry) {
    const auto task = static_cast<TaskId>(entry % tasks_);
    const std::size_t base = entry - task;
    for (const TaskId next : graph_.successors_of(task)) {
      arrive(entry, base + next, timeline_.finish[entry]);
    }
    for (const Tie& tie : graph_.ties_of(task)) {
      arrive(entry, base + static_cast<std::size_t>(tie.iterations) * tasks_ + tie.to,
             tie.from_start ? timeline_.start[entry] : timeline_.finish[entry]);
    }
  }

  const TaskGraph& graph_;
  const Timeline& timeline_;
  std::size_t tasks_;
  std::vector<std::size_t> last_; // [entry]
  std::vector<double> arrival_;   // [entry]: when that one let it go
};

// The computation that ends an iteration.
std::size_t last_entry(const TaskGraph& graph, const Timeline& timeline, int iteration) {
  const std::size_t base = static_cast<std::size_t>(iteration) * graph.tasks();
  std::size_t last = base + graph.program_of(0).back();
  for (std::size_t device = 1; device < graph.devices.size(); ++device) {
    const std::size_t entry = base + graph.program_of(device).back();
    last = timeline.finish[entry] > timeline.finish[last] ? entry : last;
  }
  return last;
}

} // namespace

double end_of_iteration(const TaskGraph& graph, const Timeline& timeline, int iteration) {
  return iteration < 0 ? 0 : timeline.finish[last_entry(graph, timeline, iteration)];
}

std::vector<std::size_t> last_waited_for(const TaskGraph& graph, const Timeline& timeline) {
  return Waits(graph, timeline).run();
}

std::vector<PathStep> critical_path(const TaskGraph& graph, const Timeline& timeline) {
  const std::vector<std::size_t> last = last_waited_for(graph, timeline);
  const double begin = end_of_iteration(graph, timeline, timeline.iterations - 1 - timeline.window);
  std::vector<PathStep> path;
  std::size_t entry = last_entry(graph, timeline, timeline.iterations - 1);
  double until =
      timeline.finish[entry]; // a task that lets another go when it starts is on the path no longer than that
  for (;;) {
    const double finish = std::min(timeline.finish[entry], until);
    if (finish <= begin) {
      break;
    }
    until = std::min(timeline.start[entry], finish);
    path.push_back({entry, std::max(until, begin), finish});
    if (last[entry] == entry) {
      break;
    }
    entry = last[entry];
  }
  std::reverse(path.begin(), path.end());
  return path;
}

} // namespace stagecraft
