// Flows over given links, each sent by a device of its own after some time of computing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <vector>

#include "sim/replay/replay.hpp"

namespace stagecraft::test {

inline constexpr double kInfinite = std::numeric_limits<double>::infinity();

struct Flow {
  double bytes = 0;
  std::vector<std::vector<LinkId>> legs; ///< one after the other, each over several links
  double start = 0;                      ///< seconds of computing before it is sent
  double latency = 0;                    ///< of each leg
};

/// A platform of nothing but links.
inline Platform links_of(const std::vector<double>& bandwidths) {
  Platform platform;
  for (const double bandwidth : bandwidths) {
    platform.links.push_back({"link", 0, 0, BytesPerSecond{bandwidth}, Seconds{0}});
  }
  return platform;
}

inline TaskGraph graph_of(const Platform& platform, const std::vector<Flow>& flows) {
  TaskGraph graph;
  graph.successor_begin = {0};
  graph.program_begin = {0};
  const auto add = [&](const Work& work, bool first, bool last) {
    graph.works.push_back(work);
    graph.work.push_back(static_cast<std::int32_t>(graph.work.size()));
    graph.micro_batch.push_back(0);
    graph.waits.push_back(first ? 0 : 1);
    if (!last) {
      graph.successors.push_back(static_cast<TaskId>(graph.work.size()));
    }
    graph.successor_begin.push_back(static_cast<std::int32_t>(graph.successors.size()));
  };
  for (std::size_t f = 0; f < flows.size(); ++f) {
    const Flow& flow = flows[f];
    const auto device = static_cast<std::int32_t>(f);
    graph.devices.push_back(device);
    graph.fixed_memory.emplace_back();
    graph.program.push_back(graph.tasks());
    graph.program_begin.push_back(static_cast<std::int32_t>(graph.program.size()));
    add({.device = device, .seconds = Seconds{flow.start}}, true, flow.legs.empty());
    for (std::size_t l = 0; l < flow.legs.size(); ++l) {
      const double bandwidth = narrowest_of(platform, flow.legs[l]).bandwidth.value;
      const Seconds latency{flow.latency};
      add({.kind = TaskKind::transfer,
           .device = device,
           .leg = static_cast<std::int32_t>(graph.legs.size()),
           .seconds = latency + Seconds{flow.bytes / bandwidth},
           .latency = latency,
           .bytes = flow.bytes},
          false, l + 1 == flow.legs.size());
      graph.legs.push_back({flow.legs[l], latency, BytesPerSecond{bandwidth}});
    }
  }
  return graph;
}

/// When each flow's last byte arrives.
inline std::vector<double> arrivals(const std::vector<double>& bandwidths, const std::vector<Flow>& flows,
                                    ReplayFunction engine = replay_simgrid) {
  const Platform platform = links_of(bandwidths);
  const TaskGraph graph = graph_of(platform, flows);
  const ReplayRequest request{graph, platform};
  const Timeline timeline = engine(std::span(&request, 1)).front();
  std::vector<double> ends;
  TaskId task = -1;
  for (const Flow& flow : flows) {
    task += 1 + static_cast<TaskId>(flow.legs.size());
    ends.push_back(timeline.finish[task]);
  }
  return ends;
}

} // namespace stagecraft::test
