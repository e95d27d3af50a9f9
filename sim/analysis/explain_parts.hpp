// The parts of a cluster that a run uses, and the run with one part faster.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/schedule/task_graph/task_graph.hpp"

namespace stagecraft {

/// Something that could be bought faster.
struct Part {
  std::string name;
  std::vector<DeviceId> devices; ///< that compute faster
  std::vector<LinkId> links;     ///< that are wider
  bool latencies = false;        ///< of all links
  bool loading = false;          ///< batches on host cores
};

/// What the graph uses: device types, single devices, links within and between nodes, single wires in both directions,
/// latencies, the cores that load. At most 64 single devices and 64 single wires: those with the most work and bytes.
/// There is no group of only one.
std::vector<Part> parts_of(const TaskGraph& graph, const Platform& platform);

/// A graph and the platform that it runs on.
struct Rig {
  TaskGraph graph;
  Platform platform;
};

/// The same with one part `factor` times as fast.
Rig with_faster(Rig rig, const Part& part, double factor);

} // namespace stagecraft
