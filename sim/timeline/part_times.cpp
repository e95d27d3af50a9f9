// SPDX-License-Identifier: Apache-2.0
#include "sim/timeline/part_times.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/statistics.hpp"
#include "sim/schedule/task_graph/unroll.hpp"

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
  for (std::size_t pair = 0; pair < parts.contention.size(); ++pair) {
    parts.contention[pair] = middle([&](const PartTimes& one) { return one.contention.at(pair); });
  }
  return parts;
}

TaskGraph with_parts(TaskGraph graph, const PartTimes& parts) {
  for (std::size_t index = 0; index < graph.works.size(); ++index) {
    Work& work = graph.works[index];
    if (work.computes()) {
      const Seconds alone = parts.works.empty() ? work.seconds : parts.works.at(index);
      const bool in_company = parts.contention.empty() && !parts.slowdowns.empty();
      work.seconds = alone * (in_company ? parts.slowdowns.at(work.device) : 1) + parts.computation;
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
  std::vector<double> measured(platform.links.size(),
                               0.0); // per link, bytes per second on the fastest leg that it limits
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

TaskGraph with_durations(const TaskGraph& graph, const Timeline& timeline) {
  TaskGraph told = unroll(graph, timeline.iterations);
  told.legs = {{{}, Seconds{0}, BytesPerSecond{std::numeric_limits<double>::infinity()}}};
  for (TaskId task = 0; task < told.tasks(); ++task) {
    Work& work = told.works[task];
    work.seconds =
        work.computes() || work.transfers() ? Seconds{timeline.finish[task] - timeline.start[task]} : Seconds{0};
    if (work.transfers()) {
      work.leg = 0;
      // On a channel, the next transfer waits for all but the latency. Elsewhere all counts as latency, which every
      // engine adds.
      work.latency = work.channel >= 0 ? std::min(work.latency, work.seconds) : work.seconds;
    }
  }
  return told;
}

} // namespace stagecraft
