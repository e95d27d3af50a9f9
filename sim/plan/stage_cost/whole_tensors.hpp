// Replicas that share the optimiser's states by whole tensors, as PyTorch's ZeroRedundancyOptimizer does.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace stagecraft {

/// Replicas that step the same part of a stage's parameters, and so broadcast as much, one after another.
struct StepsAlike {
  double part = 1;
  int replicas = 1;

  bool operator==(const StepsAlike&) const = default;
};

/// Shares out tensors of so many parameters each: the largest first, each to the replica that has fewest so far
/// (ZeroRedundancyOptimizer's `_partition_parameters`). Returns what replicas have then, the most first, without those
/// that have nothing; with one replica or without tensors, nothing.
std::vector<StepsAlike> share_out_whole(std::vector<double> tensors, int replicas);

} // namespace stagecraft
