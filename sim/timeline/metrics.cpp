// SPDX-License-Identifier: Apache-2.0
#include "sim/timeline/metrics.hpp"

#include <algorithm>
#include <numeric>

namespace stagecraft {
namespace {

// The latest finish of a computation in one iteration.
double end_of_iteration(const TaskGraph& graph, const Timeline& timeline, int iteration) {
  const std::size_t base = static_cast<std::size_t>(iteration) * graph.tasks();
  double end = 0;
  for (std::size_t device = 0; device < graph.devices.size(); ++device) {
    end = std::max(end, timeline.finish[base + graph.program_of(device).back()]);
  }
  return end;
}

// For each task, the transfer among its predecessors that finished last in the given iteration.
std::vector<TaskId> last_inputs(const TaskGraph& graph, const Timeline& timeline, std::size_t base) {
  std::vector<TaskId> last(graph.tasks(), -1);
  const double* finish = timeline.finish.data() + base;
  for (TaskId task = 0; task < graph.tasks(); ++task) {
    if (!graph.works[graph.work[task]].transfers()) {
      continue;
    }
    for (const TaskId next : graph.successors_of(task)) {
      if (last[next] < 0 || finish[task] > finish[last[next]]) {
        last[next] = task;
      }
    }
  }
  return last;
}

void walk_device(const TaskGraph& graph, const Timeline& timeline, std::size_t device, Metrics& metrics) {
  const std::size_t base = static_cast<std::size_t>(timeline.iterations - 1) * graph.tasks();
  Bytes level = graph.fixed_memory[device];
  Bytes peak = level;
  TaskId peak_task = graph.program_of(device).front();
  Seconds busy;
  for (const TaskId task : graph.program_of(device)) {
    const Work& work = graph.works[graph.work[task]];
    busy += Seconds{timeline.finish[base + task] - timeline.start[base + task]};
    level += work.acquire;
    if (level > peak) {
      peak = level;
      peak_task = task;
    }
    level -= work.release;
  }
  metrics.busy.push_back(busy);
  metrics.peak_memory.push_back(peak);
  metrics.peak_task.push_back(peak_task);
}

// A gap before a task counts as exposed as far as its last input was under way during it.
Seconds exposed_communication(const TaskGraph& graph, const Timeline& timeline, std::size_t device,
                              const std::vector<TaskId>& last, std::size_t base) {
  Seconds exposed;
  double free = timeline.start[base + graph.program_of(device).front()];
  for (const TaskId task : graph.program_of(device)) {
    const double start = timeline.start[base + task];
    if (start > free && last[task] >= 0) {
      const double sent = timeline.start[base + last[task]];
      exposed += Seconds{std::max(0.0, std::min(start, timeline.finish[base + last[task]]) - std::max(free, sent))};
    }
    free = timeline.finish[base + task];
  }
  return exposed;
}

void add_energy_and_cost(const TaskGraph& graph, const Platform& platform, Metrics& metrics) {
  std::vector<char> node_used(platform.nodes.size(), 0);
  for (std::size_t i = 0; i < graph.devices.size(); ++i) {
    const DeviceType& type = platform.type_of(graph.devices[i]);
    metrics.energy.devices_idle += type.idle * metrics.iteration;
    metrics.energy.devices_dynamic += (type.busy - type.idle) * metrics.busy[i];
    metrics.cost += type.price * metrics.iteration;
    node_used[platform.devices[graph.devices[i]].node] = 1;
  }
  for (std::size_t node = 0; node < platform.nodes.size(); ++node) {
    if (node_used[node] != 0) {
      metrics.energy.hosts_idle += platform.nodes[node].host.idle * metrics.iteration;
      metrics.cost += platform.nodes[node].host.price * metrics.iteration;
    }
  }
}

} // namespace

Metrics measure(const TaskGraph& graph, const Timeline& timeline, const Platform& platform) {
  Metrics metrics;
  const int last_iteration = timeline.iterations - 1;
  const double end = end_of_iteration(graph, timeline, last_iteration);
  metrics.makespan = Seconds{end_of_iteration(graph, timeline, 0)};
  metrics.iteration =
      last_iteration == 0 ? Seconds{end} : Seconds{end - end_of_iteration(graph, timeline, last_iteration - 1)};
  const std::size_t base = static_cast<std::size_t>(last_iteration) * graph.tasks();
  const std::vector<TaskId> last = last_inputs(graph, timeline, base);
  Seconds total;
  Seconds largest;
  for (std::size_t device = 0; device < graph.devices.size(); ++device) {
    walk_device(graph, timeline, device, metrics);
    metrics.waiting.push_back(metrics.iteration - metrics.busy[device]);
    metrics.exposed.push_back(exposed_communication(graph, timeline, device, last, base));
    total += metrics.busy[device];
    largest = std::max(largest, metrics.busy[device]);
  }
  const auto devices = static_cast<double>(graph.devices.size());
  metrics.bubble_fraction = metrics.iteration.value > 0 ? 1 - total / (devices * metrics.iteration) : 0;
  metrics.load_imbalance = total.value > 0 ? largest / (total / devices) - 1 : 0;
  metrics.tasks = static_cast<long>(graph.executed()) * timeline.iterations;
  add_energy_and_cost(graph, platform, metrics);
  return metrics;
}

BusiestLink busiest_link(const TaskGraph& graph, const Platform& platform, Seconds iteration) {
  std::vector<double> bytes(platform.links.size(), 0.0);
  for (const std::int32_t work : graph.work) {
    const Work& what = graph.works[work];
    if (what.transfers()) {
      for (const LinkId link : graph.legs[what.leg].links) {
        bytes[link] += what.bytes;
      }
    }
  }
  BusiestLink busiest;
  for (LinkId link = 0; link < static_cast<int>(bytes.size()); ++link) {
    const double share = bytes[link] / (platform.links[link].bandwidth * iteration).value;
    if (share > busiest.share) {
      busiest = {link, share};
    }
  }
  return busiest;
}

std::vector<MemoryStep> memory_over_time(const TaskGraph& graph, const Timeline& timeline, std::size_t device) {
  std::vector<MemoryStep> steps = {{0, graph.fixed_memory[device]}};
  Bytes level = graph.fixed_memory[device];
  const std::size_t base = static_cast<std::size_t>(timeline.iterations - 1) * graph.tasks();
  for (const TaskId task : graph.program_of(device)) {
    const Work& work = graph.works[graph.work[task]];
    if (work.acquire.value > 0) {
      level += work.acquire;
      steps.push_back({timeline.start[base + task], level});
    }
    if (work.release.value > 0) {
      level -= work.release;
      steps.push_back({timeline.finish[base + task], level});
    }
  }
  return steps;
}

} // namespace stagecraft
