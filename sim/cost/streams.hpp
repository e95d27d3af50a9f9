// Kernels on the streams of one device: they share it, and streams hide the gaps in which kernels are launched.
// Layered graph scheduling, Wang et al. 2024; Graham's LPT rule inside a layer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/platform/platform.hpp"
#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// One kernel: a gap in which it is launched and the device is free, then work, which takes a share of the device's
/// arithmetic and of its memory bandwidth.
struct StreamKernel {
  double gap = 0, work = 0;          ///< s, alone on the device
  double compute = 1, bandwidth = 1; ///< shares in [0, 1] while it works
  bool element_wise = false;         ///< may run inside the kernel that makes its input

  double seconds() const { return gap + work; }
};

/// The kernel of a pass that takes `time`: gaps are its launches; shares are its FLOP/s and B/s over what the device
/// does at most, 1 where the pass knows neither.
StreamKernel kernel_of(const Pass& pass, KernelKind kind, const DeviceType& type, double samples, Precision precision,
                       Seconds time);

/// Kernels in topological order: predecessors have lower numbers.
struct KernelGraph {
  std::vector<StreamKernel> kernels;
  std::vector<std::vector<int>> predecessors;
};

/// Longest path from the sources, in kernels.
std::vector<int> levels_of(const KernelGraph& graph);

/// Merges element-wise kernels whose work is less than `launch` into their only predecessor: no gap, no launch. Chains
/// follow.
KernelGraph fuse_cheap(const KernelGraph& graph, double launch);

/// Level by level, LPT on the streams, after single kernels have moved to the level within their slack where the sum of
/// the longest streams falls most. A level ends when its last kernel does; `sync` seconds follow each but the last.
double layered_seconds(const KernelGraph& graph, int streams, double sync);

/// The same priorities without levels: a free stream takes the ready kernel of the lowest level, the longest first.
double unsynchronised_seconds(const KernelGraph& graph, int streams);

/// One kernel after another.
double sequential_seconds(const KernelGraph& graph);

/// The least of the three above, after fusion. Never less than the longest path nor than the work that any one resource
/// of the device has to do. `launch`: of the device, one kernel or one synchronisation.
double best_seconds(const KernelGraph& graph, int streams, double launch);

} // namespace stagecraft
