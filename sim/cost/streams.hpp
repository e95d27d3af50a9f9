// Kernels on the streams of one device, which they share: while one kernel is launched, others work. Layered graph
// scheduling, Wang et al. 2024; Graham's LPT rule inside a layer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/platform/platform.hpp"
#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// One kernel: first a gap in which it is launched and the device is free, then work, which takes a share of the
/// device's arithmetic and of its memory bandwidth.
struct StreamKernel {
  double gap = 0, work = 0;          ///< seconds, alone on the device
  double compute = 1, bandwidth = 1; ///< shares in [0, 1] during the work
  bool element_wise = false;         ///< may be fused into the kernel that makes its input

  double seconds() const { return gap + work; }
};

/// The kernel of a pass that takes `time`, whose products are of the format `products` (nothing: of `precision`). Its
/// gap is its launches; its shares are FLOP/s and B/s divided by what the device can do, or 1 where the pass gives
/// neither.
StreamKernel kernel_of(const Pass& pass, KernelKind kind, const DeviceType& type, double samples, Precision precision,
                       Seconds time, std::optional<Precision> products = std::nullopt);

/// Kernels in topological order: predecessors have lower numbers.
struct KernelGraph {
  std::vector<StreamKernel> kernels;
  std::vector<std::vector<int>> predecessors;
};

/// The level of each kernel: the number of kernels on the longest path to it from a source.
std::vector<int> levels_of(const KernelGraph& graph);

/// Merges element-wise kernels whose work is less than `launch` into their only predecessor, without gap or launch.
/// Whole chains merge.
KernelGraph fuse_cheap(const KernelGraph& graph, double launch);

/// Seconds of running level by level with LPT on the streams. First, single kernels move to other levels within their
/// slack, the best move first, as long as the sum of the levels' longest streams falls. A level ends with its last
/// kernel; `sync` seconds follow each level but the last.
double layered_seconds(const KernelGraph& graph, int streams, double sync);

/// Seconds with the same priorities but without levels: a free stream takes the ready kernel of the lowest level, the
/// longest first.
double unsynchronised_seconds(const KernelGraph& graph, int streams);

/// Seconds of running one kernel after another.
double sequential_seconds(const KernelGraph& graph);

/// The least of the three above, after fusion. Never less than the longest path, or than the work on any one resource
/// of the device. `launch`: seconds of a kernel launch, and of a synchronisation.
double best_seconds(const KernelGraph& graph, int streams, double launch);

} // namespace stagecraft
