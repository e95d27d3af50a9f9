// Cuts of a chain with the least pipeline latency: the dynamic program of AMP (Li et al. 2022).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

namespace stagecraft {

/// Whether a part is allowed; never: nor is any longer one from the same layer.
enum class Fit { yes, no, never };

/// A chain of layers to be cut into `parts` parts, none of them empty.
struct LatencyChain {
  int layers = 1, parts = 1;
  double repeats = 0; ///< M - 1: how often the slowest part counts on top of the sum
  /// Seconds of layers [first, last) as one part. More layers never take less.
  std::function<double(int part, int first, int last)> seconds;
  std::vector<int> kind; ///< [part]: parts of one kind, from 0 on, take the same seconds; none: no two do
  /// Whether a part may have layers [first, last); none: any.
  std::function<Fit(int part, int first, int last)> fits;
  bool shorter_fit = false; ///< where a part fits, so does every shorter one from the same layer
  /// Seconds of the transfer between part - 1 and part if `cut` layers come before it; counted once.
  std::function<double(int part, int cut)> transfer;
};

struct LatencyCuts {
  std::vector<int> bounds; ///< parts + 1, from 0 to layers
  double bottleneck = 0;   ///< the slowest part
  double sum = 0;          ///< sum over parts and transfers
  double latency = 0;      ///< repeats * bottleneck + sum
};

/// The cuts with the least latency, to 10^-9. For a given bottleneck beta, the least sum with no part above it is a
/// shortest path, O(parts layers^2). The interval of beta is halved again and again; a half is searched only if repeats
/// * its lower end + the sum at its upper end, which no beta in it can beat, is below the best latency so far. No value
/// if no cuts are allowed.
std::optional<LatencyCuts> latency_cuts(const LatencyChain& chain);

} // namespace stagecraft
