// How long the ranks of a group take for a program whose layout has one dimension.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "sim/collective/collective.hpp"
#include "sim/cost/cost_model.hpp"
#include "sim/plan/program/program.hpp"
#include "sim/plan/program/shared_letters.hpp"

namespace stagecraft {

/// What the steps of a program take, on a group of ranks that are as fast as the slowest of them.
struct StepTimes {
  /// A rank's part of an operator of the program, forward and backward, without what is exchanged.
  std::function<Seconds(int op, const Shard& shard)> computation;
  Group group;
  double samples = 1;       ///< of a micro-batch: signatures are of one sample
  Bytes element{2};         ///< of an activation; what is reduced inside an operator has single precision
  Bytes gradient{4};        ///< of a parameter
  double micro_batches = 1; ///< of an iteration, over which the reduction of gradients is spread
};

/// The collective that a step is.
CollectiveKind collective_of(StepKind step);

/// A rank's part of an operator that shares the letter with the others: of its activations the part that it reads and
/// writes.
Shard shard_of_operator(const Signature& signature, int letter, int degree);

/// The collective that changes how a tensor of so many bytes lies. Its buffer is the whole tensor, but each rank brings
/// no more to an all-to-all, a dispatch or a combine than the part that it has.
Collective collective_on(CollectiveKind kind, const Group& group, Bytes tensor);

/// Seconds of a collective inside a micro-batch, on a tensor of these dimensions for each sample.
Seconds exchange_seconds(CollectiveKind kind, const TensorDimensions& dimensions, Bytes element,
                         const StepTimes& times);

/// Seconds of adding up gradients of an operator's parameters of which each rank has terms, so many elements of them: a
/// micro-batch's part, as it is done once an iteration.
Seconds reduction_seconds(double elements, const StepTimes& times);

/// Seconds of a micro-batch, forward and backward, with its part of the reduction: all computations and collectives one
/// after the other, by closed form, as the plan's costs charge them (sim/plan/stage_cost/passes/tensor_parallel.hpp).
Seconds program_seconds(const Program& program, const SharedLetters& shared, const StepTimes& times);

} // namespace stagecraft
