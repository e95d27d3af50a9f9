// Runs programs with real numbers on simulated ranks: the proof that what a program exchanges is what its computations
// need. It adds no exchange of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/plan/program/program.hpp"

namespace stagecraft::testing {

/// A tensor of doubles, last dimension fastest.
struct Numbers {
  std::vector<std::int64_t> sizes;
  std::vector<double> values;
};
Numbers zeros(const std::vector<std::int64_t>& sizes);
double norm_of(const Numbers& numbers);
/// The norm of the difference over that of `right`; infinite where sizes differ.
double relative_error(const Numbers& left, const Numbers& right);

/// What a computation of one rank reads. `first_word` is where its part of the vocabulary begins,
/// `first_token` where its tokens do, `first_expert` where its experts do.
struct Reads {
  const Numbers* gradient = nullptr;
  std::vector<const Numbers*> inputs, parameters, reductions;
  std::int64_t first_word = 0, first_token = 0, first_expert = 0;
};

/// The computations of an operator, on whatever part of its tensors a rank has.
struct Math {
  std::function<Numbers(const Reads&)> forward;
  std::function<Numbers(const Reads&, int index)> reduced;         ///< what is reduced inside
  std::function<Numbers(const Reads&, int index)> backward_input;  ///< gradient of an input
  std::function<Numbers(const Reads&, int index)> backward_weight; ///< gradient of a parameter
};

/// Everything whole: what the ranks get parts of.
struct Inputs {
  std::vector<Math> maths;                           ///< [operator]
  std::map<std::pair<int, int>, Numbers> parameters; ///< [operator, parameter]
  std::map<int, Numbers> data;                       ///< [input's index]: of the data
};

/// What came of a run. A collective is redundant if every rank had its result before, if the same collective of the
/// same tensor stands before it in its pass, or if nothing reads its result.
struct Outcome {
  std::map<std::pair<int, int>, Numbers> gradients; ///< [operator, parameter], put together from all ranks
  std::map<std::pair<int, int>, Numbers> updated;   ///< parameters after a step of plain descent, where there is one
  Numbers loss;
  std::vector<std::string> defects;   ///< ranks that disagree, sizes that do not fit
  std::vector<std::size_t> redundant; ///< numbers of collectives, in the order of the program
};

/// Runs the program.
Outcome run(const Program& program, const Inputs& inputs);

} // namespace stagecraft::testing
