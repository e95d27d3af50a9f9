// The parts of a cluster that a run uses, and how long the run takes with one part faster.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/replay/replay.hpp"

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
/// and bytes. There is no group of only one.
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

/// A run to replay again: its iterations, and over how many of the last it is measured.
struct SensitivityRequest {
  ReplayFunction engine = nullptr;
  int iterations = 1, window = 1;
  Seconds iteration; ///< as it was measured; sensitivities are relative to it, whatever a replay of the rig takes
  Seconds replayed;  ///< the rig's own iteration time by the engine
};

/// What a replay of the rig takes for an iteration. Where iterations overlap it may differ from what was measured over
/// more of them.
Seconds replayed_iteration(const Rig& rig, const SensitivityRequest& request);

/// One for each part, the most helpful first.
std::vector<Sensitivity> sensitivities(const Rig& rig, const std::vector<Part>& parts,
                                       const SensitivityRequest& request);

} // namespace stagecraft
