// Cuts of a chain that make a pipeline's latency least: the dynamic program of AMP (Li et al. 2022).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

namespace stagecraft {

/// A chain of layers to be cut into as many parts, none empty.
struct LatencyChain {
  int layers = 1, parts = 1;
  double repeats = 0; ///< M - 1: how often the slowest part counts on top of the sum
  /// Seconds of layers [first, last) as a part; infinite where it may not be. More layers take no less.
  std::function<double(int part, int first, int last)> seconds;
  /// Seconds between part - 1 and part when `cut` layers stand before; counted once.
  std::function<double(int part, int cut)> transfer;
};

struct LatencyCuts {
  std::vector<int> bounds; ///< parts + 1, from 0 to layers
  double bottleneck = 0;   ///< the slowest part
  double sum = 0;          ///< sum over parts and transfers
  double latency = 0;      ///< repeats * bottleneck + sum
};

/// The least latency to 10^-9: for a bottleneck beta the least sum with no part above it is a shortest path, O(parts
/// layers^2). Betas are halved, and of two halves those kept where repeats * lower end + sum at the upper end, which no
/// beta in between can beat, is below the best so far. Nothing where no cuts are allowed.
std::optional<LatencyCuts> latency_cuts(const LatencyChain& chain);

} // namespace stagecraft
