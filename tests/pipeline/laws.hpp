// Laws that any real run obeys.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/timeline/timeline.hpp"

namespace stagecraft::pipeline {

/// The laws of timelines that this one breaks, in words.
inline std::vector<std::string> broken_laws(const TaskGraph& graph, const Timeline& timeline, int iterations) {
  std::vector<std::string> broken;
  const auto expect = [&](bool holds, const std::string& law) {
    if (!holds) {
      broken.push_back(law);
    }
  };
  const auto tasks = static_cast<std::size_t>(graph.tasks());
  expect(timeline.start.size() == tasks * iterations, "every task runs once in each iteration");
  for (std::size_t entry = 0; entry < timeline.start.size(); ++entry) {
    const auto task = static_cast<TaskId>(entry % tasks);
    const Work& work = graph.works[graph.work[task]];
    expect(timeline.start[entry] >= 0, "nothing starts before the beginning");
    // to the microsecond: durations are cut to nanoseconds
    expect(timeline.finish[entry] - timeline.start[entry] >= work.seconds.value - 1e-6, "a task takes its time");
    for (const TaskId next : graph.successors_of(task)) {
      expect(timeline.start[entry - task + next] >= timeline.finish[entry], "a task waits for its predecessors");
    }
    for (const Tie& tie : graph.ties_of(task)) {
      const std::size_t later = entry - task + tie.iterations * tasks + tie.to;
      if (later < timeline.start.size()) {
        expect(timeline.start[later] >= timeline.finish[entry], "a task waits for earlier iterations");
      }
    }
  }
  for (std::size_t device = 0; device < graph.devices.size(); ++device) {
    double free = 0;
    for (int iteration = 0; iteration < iterations; ++iteration) {
      for (const TaskId task : graph.program_of(device)) {
        const std::size_t entry = iteration * tasks + task;
        expect(timeline.start[entry] >= free, "a device does one thing after the other, in the order of its program");
        free = timeline.finish[entry];
      }
    }
  }
  return broken;
}

} // namespace stagecraft::pipeline
