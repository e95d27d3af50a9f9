// SPDX-License-Identifier: Apache-2.0
#include "sim/timeline/part_times.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "sim/base/statistics.hpp"
#include "sim/schedule/add_edges.hpp"

namespace stagecraft {

PartTimes median(std::span<const PartTimes> measured) {
  const auto middle = [&](const auto& value) {
    std::vector<double> values;
    for (const PartTimes& one : measured) {
      values.push_back(value(one));
    }
    return quantile(values, 0.5);
  };
  PartTimes parts = measured.front();
  parts.computation = Seconds{middle([](const PartTimes& one) { return one.computation.value; })};
  for (std::size_t leg = 0; leg < parts.legs.size(); ++leg) {
    parts.legs[leg] = {Seconds{middle([&](const PartTimes& one) { return one.legs.at(leg).latency.value; })},
                       middle([&](const PartTimes& one) { return one.legs.at(leg).seconds_per_byte; })};
  }
  for (std::size_t work = 0; work < parts.works.size(); ++work) {
    parts.works[work] = Seconds{middle([&](const PartTimes& one) { return one.works.at(work).value; })};
  }
  for (std::size_t device = 0; device < parts.slowdowns.size(); ++device) {
    parts.slowdowns[device] = middle([&](const PartTimes& one) { return one.slowdowns.at(device); });
  }
  return parts;
}

TaskGraph with_parts(TaskGraph graph, const PartTimes& parts) {
  for (std::size_t index = 0; index < graph.works.size(); ++index) {
    Work& work = graph.works[index];
    if (work.computes()) {
      const Seconds alone = parts.works.empty() ? work.seconds : parts.works.at(index);
      work.seconds = alone * (parts.slowdowns.empty() ? 1 : parts.slowdowns.at(work.device)) + parts.computation;
    } else if (work.transfers()) {
      const PathCost& cost = parts.legs.at(work.leg);
      work.latency += cost.latency - graph.legs[work.leg].latency;
      work.latency = std::max(work.latency, Seconds{0});
      work.seconds = work.latency + Seconds{work.bytes * cost.seconds_per_byte};
    }
  }
  for (std::size_t leg = 0; leg < graph.legs.size(); ++leg) {
    const double slowness = parts.legs.at(leg).seconds_per_byte;
    graph.legs[leg].latency = parts.legs[leg].latency;
    graph.legs[leg].bandwidth = BytesPerSecond{slowness > 0 ? 1 / slowness : std::numeric_limits<double>::infinity()};
  }
  return graph;
}

Platform with_parts(Platform platform, const TaskGraph& graph, const PartTimes& parts) {
  std::vector<double> measured(platform.links.size(), 0.0); // of each link the widest leg that it bounds
  double ratios = 0;
  int bounded = 0;
  for (std::size_t leg = 0; leg < graph.legs.size(); ++leg) {
    const double slowness = parts.legs.at(leg).seconds_per_byte;
    const double asked = graph.legs[leg].bandwidth.value;
    if (slowness <= 0 || std::isinf(asked)) {
      continue;
    }
    ratios += 1 / slowness / asked;
    ++bounded;
    for (const LinkId link : graph.legs[leg].links) {
      if (platform.links[link].bandwidth.value <= asked) {
        measured[link] = std::max(measured[link], 1 / slowness);
      }
    }
  }
  const double usual = bounded > 0 ? ratios / bounded : 1;
  for (std::size_t link = 0; link < measured.size(); ++link) {
    BytesPerSecond& bandwidth = platform.links[link].bandwidth;
    bandwidth = measured[link] > 0 ? BytesPerSecond{measured[link]} : bandwidth * usual;
  }
  return platform;
}

namespace {

// Entries of the timeline become tasks; edges stay within an iteration but for ties.
std::vector<Edge> edges_over(const TaskGraph& graph, int iterations) {
  std::vector<Edge> edges;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    const TaskId base = iteration * graph.tasks();
    for (TaskId task = 0; task < graph.tasks(); ++task) {
      for (const TaskId next : graph.successors_of(task)) {
        edges.push_back({base + task, base + next});
      }
      for (const Tie& tie : graph.ties_of(task)) {
        if (iteration + tie.iterations < iterations) {
          edges.push_back({base + task, base + tie.iterations * graph.tasks() + tie.to});
        }
      }
    }
  }
  return edges;
}

} // namespace

TaskGraph with_durations(const TaskGraph& graph, const Timeline& timeline) {
  if (graph.workers > 0) {
    throw std::invalid_argument("a loader's order cannot be told again");
  }
  TaskGraph told;
  told.devices = graph.devices;
  told.fixed_memory = graph.fixed_memory;
  told.joins = graph.joins * timeline.iterations;
  const Leg free{{}, Seconds{0}, BytesPerSecond{std::numeric_limits<double>::infinity()}};
  told.legs.push_back(free);
  for (std::size_t entry = 0; entry < timeline.start.size(); ++entry) {
    const auto task = static_cast<TaskId>(entry % graph.tasks());
    Work work = graph.works[graph.work[task]];
    work.seconds =
        work.computes() || work.transfers() ? Seconds{timeline.finish[entry] - timeline.start[entry]} : Seconds{0};
    if (work.transfers()) {
      work.leg = 0;
      work.latency = work.seconds; // which an engine that shares bandwidth pays too
    }
    told.work.push_back(static_cast<std::int32_t>(entry));
    told.works.push_back(work);
    told.micro_batch.push_back(graph.micro_batch[task]);
  }
  add_edges(told, edges_over(graph, timeline.iterations));
  for (std::size_t device = 0; device < graph.devices.size(); ++device) {
    told.program_begin.push_back(static_cast<std::int32_t>(told.program.size()));
    for (int iteration = 0; iteration < timeline.iterations; ++iteration) {
      for (const TaskId task : graph.program_of(device)) {
        told.program.push_back(iteration * graph.tasks() + task);
      }
    }
  }
  told.program_begin.push_back(static_cast<std::int32_t>(told.program.size()));
  return told;
}

} // namespace stagecraft
