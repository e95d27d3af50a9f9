// What each operator adds to a program's seconds, letter by letter: a program's cost as a sum that a search can run
// over.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/plan/program/placement.hpp"
#include "sim/plan/program/program_seconds.hpp"

namespace stagecraft {

/// What a reader of a tensor, sharing some letter, asks of it.
struct Reading {
  Placement need;              ///< as which it reads it
  bool again = false;          ///< in backward too
  bool differentiates = false; ///< passes a gradient back, which it makes as
  Placement gradient{};
  bool operator==(const Reading&) const = default;
};

/// The terms of program_seconds() along one tensor axis. That of an operator depends on its own letter and on what the
/// readers of its output ask, each thing once: its computation, what its output and the output's gradient are exchanged
/// for, and the reduction of its parameters' gradients. All operators' terms add up to the seconds of the program.
class LetterCosts {
public:
  /// Operators in topological order, which have agreed on their order of features (agree_on_order). Both must outlive
  /// this.
  LetterCosts(const std::vector<Signature>& operators, const StepTimes& times);

  /// Seconds of an operator's term; `letters` has a letter for it and for its readers, at least.
  double seconds(int op, const std::vector<int>& letters) const;

  /// What a reader asks that shares the letter.
  Reading reading(const OutputReader& reader, int letter) const;

  /// Whether an operator whose first parameter is another's may share this letter while that one shares its own.
  bool tie_holds(int op, const std::vector<int>& letters) const;

  const std::vector<std::vector<OutputReader>>& readers() const { return readers_; }

private:
  double inner(int op, int letter) const;
  double exchanges(int op, const std::vector<int>& letters) const;
  double reduction(int op, int letter, const Placement& gradient) const; ///< of the output, as it is taken
  double exchanged(int op, const Placement& from, const Placement& to) const;

  const std::vector<Signature>& operators_;
  const StepTimes& times_;
  std::vector<std::vector<OutputReader>> readers_;
  std::vector<char> has_gradient_; // [operator]: whether its output has one
};

} // namespace stagecraft
