// What a tensor-parallel group divides, and what it must exchange (Shoeybi et al. 2019, without sequence parallelism).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/plan/problem.hpp"

namespace stagecraft {

/// Per operator of a stage, in its order.
struct TensorSplit {
  std::vector<char> splits_activations; ///< inside a pair, or its second operator: works on its part of the input
  std::vector<Bytes> forward, backward; ///< all-reduced over the group after the pass, for one micro-batch
};

/// Every operator with weights (matrix kinds, embeddings, and those of unknown kind) sums its output over the group in
/// forward and its input's gradient in backward. Two of them that follow each other in a chain within the stage, with
/// nothing but element-wise operators, attention, pooling and views in between, are a pair: the first is divided by
/// columns and sums no output, the second by rows and sums no gradient. Each is in one pair at most, the earliest.
TensorSplit split_tensors(const Problem& problem, const std::vector<OperatorId>& stage);

/// The slowest latency and bandwidth between neighbours of a ring.
PathCost slowest_of_ring(const Problem& problem, const std::vector<DeviceId>& ring);

} // namespace stagecraft
