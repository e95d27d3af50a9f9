// What operators of a stage keep from forward until backward where some of them run forward again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/plan/problem.hpp"
#include "sim/plan/stage_cost/passes/tensor_parallel.hpp"

namespace stagecraft {

/// The part of an operator's stash that others of its segment in the stage make again.
double part_made_again(const Problem& problem, const Stage& stage, OperatorId op);

/// What an operator of the stage keeps of a whole micro-batch until its backward: its stash without what others make
/// again; or, if it runs forward again, what it is the first to read from outside the segment.
struct KeptBytes {
  Bytes all, read_again;
};
std::vector<KeptBytes> kept_by_operators(const Problem& problem, const Stage& stage, const TensorSplit& split);

} // namespace stagecraft
