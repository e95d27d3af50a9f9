// What a tensor-parallel group divides, and what it must exchange (Shoeybi et al. 2019, without sequence parallelism).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/collective/collective.hpp"
#include "sim/plan/problem.hpp"

namespace stagecraft {

/// How the operators of a stage are divided; one entry for each, in the stage's order.
struct TensorSplit {
  std::vector<Shard> shards; ///< degree 1: each device of the group does the whole operator
  /// Bytes that the group all-reduces after the pass, for one micro-batch; no value if it needs no all-reduce.
  std::vector<std::optional<Bytes>> forward, backward;
  std::vector<Bytes> exchanged; ///< bytes sent in either pass, if a file gives them
};

/// Every operator with weights (matrix kinds, embeddings, and those of unknown kind) is divided; it sums its output
/// over the group in forward and its input's gradient in backward. Two of them that follow each other in a chain within
/// the stage, with nothing but element-wise operators, attention, pooling and views in between, form a pair: the first
/// is divided by columns and sums no output, the second by rows and sums no gradient, and what is in between is divided
/// too. An operator belongs to at most one pair, the earliest. All other operators run whole on every device. If the
/// model's file has measured an operator at this degree, its times include all of this, except what the file says a cut
/// adds.
TensorSplit split_tensors(const Problem& problem, const std::vector<OperatorId>& stage, int degree);

/// How long a tensor-parallel group waits for what an operator makes it exchange, after each pass.
struct GroupWaits {
  Seconds forward, backward;
};

/// The waits for operator number `at` of the split's stage, for a share of the micro-batch; none in a group of one.
GroupWaits group_waits(const TensorSplit& split, std::size_t at, const Group& group, double share);

} // namespace stagecraft
