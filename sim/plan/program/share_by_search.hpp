// The letters that a group shares for the least time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/plan/program/program_seconds.hpp"
#include "sim/plan/program/shared_letters.hpp"

namespace stagecraft {

/// Among which letters to search.
struct SearchRule {
  bool sequence = false; ///< operators at the segment's borders share tokens; else nothing
  /// A rank may hold all of a weight that others could hold parts of. Otherwise it holds no more of an operator's
  /// parameters than by the framework's rule that leaves it most, or than it must.
  bool whole_weights = false;
  std::vector<char> borders{}; ///< [operator]: whether it stands for a tensor that crosses the border; empty: none does
};

struct FoundLetters {
  SharedLetters shared;
  Seconds seconds;   ///< program_seconds() of the program that they give
  bool exact = true; ///< no letters take less; false where the search kept only the best of too many states
};

/// The letters for which program_seconds() is least, over a layout of one tensor axis. An operator may share any letter
/// but samples that divides and that it does not need at once, or that a framework's rule chooses (which makes words
/// up), or none. A dynamic program along the operators: what a tensor costs depends on its maker's letter and on what
/// its readers ask of it, so a state says that of the tensors that live. It takes operators * letters * states steps,
/// and keeps the 4096 quickest states. Where they are too few, it is still no slower than any rule.
FoundLetters share_by_search(const std::vector<Signature>& operators, const Layout& layout, const SearchRule& rule,
                             const StepTimes& times);

/// Which letters share_by_search() tries: [operator], kNone among them where it may be.
std::vector<std::vector<int>> letters_to_search(const std::vector<Signature>& operators, const Layout& layout,
                                                const SearchRule& rule);

} // namespace stagecraft
