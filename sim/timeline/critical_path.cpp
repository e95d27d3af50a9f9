// SPDX-License-Identifier: Apache-2.0
#include "sim/timeline/critical_path.hpp"

#include <algorithm>
#include <tuple>

namespace stagecraft {
namespace {

// The entry (iteration * tasks + task) of the computation that ends an iteration.
std::size_t last_entry(const TaskGraph& graph, const Timeline& timeline, int iteration) {
  const std::size_t base = static_cast<std::size_t>(iteration) * graph.tasks();
  std::size_t last = base + graph.program_of(0).back();
  for (std::size_t device = 1; device < graph.devices.size(); ++device) {
    const std::size_t entry = base + graph.program_of(device).back();
    last = timeline.finish[entry] > timeline.finish[last] ? entry : last;
  }
  return last;
}

// The entries that each channel carried, in the order in which their bytes entered it: that of their starts.
std::vector<std::vector<std::size_t>> sent_on_ways(const TaskGraph& graph, const Timeline& timeline) {
  std::vector<std::vector<std::size_t>> sent(graph.channels);
  for (std::size_t entry = 0; graph.channels > 0 && entry < timeline.start.size(); ++entry) {
    const std::int32_t channel = graph.works[graph.work[entry % graph.tasks()]].channel;
    if (channel >= 0) {
      sent[channel].push_back(entry);
    }
  }
  for (std::vector<std::size_t>& entries : sent) {
    std::stable_sort(entries.begin(), entries.end(), [&](std::size_t a, std::size_t b) {
      return std::tie(timeline.start[a], timeline.finish[a]) < std::tie(timeline.start[b], timeline.finish[b]);
    });
  }
  return sent;
}

} // namespace

double end_of_iteration(const TaskGraph& graph, const Timeline& timeline, int iteration) {
  return iteration < 0 ? 0 : timeline.finish[last_entry(graph, timeline, iteration)];
}

std::vector<LastInput> last_inputs(const TaskGraph& graph, const Timeline& timeline) {
  const auto tasks = static_cast<std::size_t>(graph.tasks());
  std::vector<LastInput> last(timeline.start.size());
  for (std::size_t entry = 0; entry < last.size(); ++entry) {
    last[entry].entry = entry;
  }
  const auto arrive = [&](std::size_t from, std::size_t to, double time) {
    if (to < last.size() && time > last[to].time) {
      last[to] = {from, time};
    }
  };
  for (std::size_t entry = 0; entry < last.size(); ++entry) {
    const auto task = static_cast<TaskId>(entry % tasks);
    const std::size_t base = entry - task;
    for (const TaskId next : graph.successors_of(task)) {
      arrive(entry, base + next, timeline.finish[entry]);
    }
    for (const Tie& tie : graph.ties_of(task)) {
      arrive(entry, base + static_cast<std::size_t>(tie.iterations) * tasks + tie.to,
             tie.from_start ? timeline.start[entry] : timeline.finish[entry]);
    }
  }
  for (const std::vector<std::size_t>& entries : sent_on_ways(graph, timeline)) {
    for (std::size_t at = 1; at < entries.size(); ++at) {
      const double latency = graph.works[graph.work[entries[at - 1] % tasks]].latency.value;
      arrive(entries[at - 1], entries[at],
             timeline.finish[entries[at - 1]] - latency); // the last byte has left the sender
    }
  }
  return last;
}

std::vector<std::size_t> last_waited_for(const TaskGraph& graph, const Timeline& timeline) {
  const std::vector<LastInput> inputs = last_inputs(graph, timeline);
  std::vector<std::size_t> last;
  last.reserve(inputs.size());
  for (const LastInput& input : inputs) {
    last.push_back(input.entry);
  }
  const auto tasks = static_cast<std::size_t>(graph.tasks());
  for (std::size_t device = 0; device < graph.devices.size(); ++device) {
    const auto program = graph.program_of(device);
    std::size_t before = last.size(); // past the end: no task before
    for (std::size_t at = 0; at < program.size() * static_cast<std::size_t>(timeline.iterations); ++at) {
      const std::size_t entry = at / program.size() * tasks + program[at % program.size()];
      if (before < last.size() && timeline.finish[before] >= inputs[entry].time) {
        last[entry] = before;
      }
      before = entry;
    }
  }
  return last;
}

std::vector<PathStep> critical_path(const TaskGraph& graph, const Timeline& timeline) {
  const std::vector<std::size_t> last = last_waited_for(graph, timeline);
  const double begin = end_of_iteration(graph, timeline, timeline.iterations - 1 - timeline.window);
  std::vector<PathStep> path;
  std::size_t entry = last_entry(graph, timeline, timeline.iterations - 1);
  double until = timeline.finish[entry]; // a task that releases another when it starts is on the path only until then
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
