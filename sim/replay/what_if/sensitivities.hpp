// The parts of a cluster that a run uses, and how long the run takes with one part faster.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
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
/// latencies, the cores that load. At most so many single devices, and so many single wires: those with the most work
/// and bytes. There is no group of only one; what is folded counts as all that it stands for.
std::vector<Part> parts_of(const TaskGraph& graph, const Platform& platform, std::size_t most_single = 64);

/// A graph and the platform that it runs on.
struct Rig {
  TaskGraph graph;
  Platform platform;
};

/// The same with one part `factor` times as fast.
Rig with_faster(Rig rig, const Part& part, double factor);

/// How long an iteration takes when one part of the cluster is faster.
struct Sensitivity {
  static constexpr double kFaster = 1.1; ///< times as fast as it is

  std::string part;
  Seconds iteration;
};

/// One for each part, the most helpful first. `replayed` gives the iteration time of a rig by a replay, and `before` is
/// what it gives without any faster part; the sensitivities are relative to `iteration`, as it was measured.
std::vector<Sensitivity> sensitivities(const Rig& rig, const std::vector<Part>& parts,
                                       const std::function<Seconds(const Rig&)>& replayed, Seconds before,
                                       Seconds iteration);

} // namespace stagecraft
