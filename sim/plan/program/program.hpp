// What the ranks of a stage do for one micro-batch, step by step: computations on parts of tensors, and the collectives
// between them. Every rank runs the same steps.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "sim/collective/layout.hpp"
#include "sim/plan/program/placement.hpp"
#include "sim/workload/signature.hpp"

namespace stagecraft {

using TensorId = int; ///< index into Program::tensors

/// A tensor at one place of the program. What a collective makes of a tensor is another tensor.
struct ProgramTensor {
  enum class Role { value, gradient, parameter, parameter_gradient, reduction };
  Role role = Role::value;
  int op = -1;   ///< whose output, parameter or inner reduction it is; -1: the data
  int index = 0; ///< of the parameter, inner reduction, or of the reading operator's input
  TensorDimensions dimensions;
  Placements placements; ///< [dimension of the layout]
};

/// Elements of a tensor that one rank holds.
double local_elements(const ProgramTensor& tensor, const Layout& layout);

enum class StepKind {
  forward,         ///< reads the inputs, then parameters and what was reduced so far; writes the output
  reduced,         ///< the part of a forward before inner reduction number `index`; writes what is reduced
  add_last,        ///< adds the parameters that come last
  backward_input,  ///< reads the output's gradient and what was saved; writes the gradient of input `index`
  backward_weight, ///< the same for the gradient of parameter `index`
  add,             ///< adds up what it reads
  step,            ///< of the optimiser: reads a parameter and its gradient, or parts of them; writes the new parameter
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  /// Nothing is exchanged: a rank keeps its own part of what it has whole; or makes a term of a sum of what it has: of
  /// a part with zeros elsewhere, of what all have on the first rank alone.
  take_part
};
constexpr bool is_collective(StepKind kind) { return kind >= StepKind::all_reduce && kind <= StepKind::all_to_all; }

struct Step {
  StepKind kind = StepKind::forward;
  int op = -1;               ///< of a computation
  int index = 0;             ///< as its kind says
  std::size_t dimension = 0; ///< of a collective or take_part: the layout's
  bool maximum = false;      ///< of an all_reduce: the greatest instead of the sum
  std::vector<TensorId> reads;
  TensorId writes = -1;
};

/// The steps of a micro-batch, and those that follow the last one. Parameters stand as they lie between iterations;
/// where ranks share them, each operator's are gathered for a forward, and again for a backward.
struct Program {
  Layout layout;
  std::vector<Signature> operators;
  std::vector<ProgramTensor> tensors;
  std::vector<Step> forward, backward;
  std::vector<Step> reduction;  ///< of the parameters' gradients, once all micro-batches have added theirs
  std::vector<Step> update;     ///< the optimiser's steps, if they were asked for, and what they have gathered
  std::vector<TensorId> values; ///< [operator]: its output as others read it
  std::vector<std::vector<TensorId>> parameters; ///< [operator][parameter]
  std::vector<std::vector<TensorId>> gradients,
      reduced;                                ///< [operator][parameter]: of a micro-batch; of the whole batch
  std::vector<std::vector<TensorId>> updated; ///< [operator][parameter]: after the step; -1: not trained, or another's
};

} // namespace stagecraft
