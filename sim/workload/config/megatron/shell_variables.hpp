// The variables that a shell script sets, as far as they can be told without executing it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"

namespace stagecraft {

/// A variable's value and the place of it.
struct ShellVariable {
  std::string text;
  Where where;
};

struct ShellVariables {
  std::map<std::string, ShellVariable> values; ///< by name; the last assignment holds
  /// What only a shell could tell, one entry each: values that are computed, or that come from outside the file, and
  /// lines that are no assignments.
  std::vector<std::string> not_understood;
  std::map<std::string, ShellVariable> not_told{}; ///< the variables among these, with what the file sets them to
};

/// Reads `export A=B C=D`, `A=B`, `unset A` and `: "${A:=B}"`, quotes, comments, and references `$A`, `${A}`, `${A:-B}`
/// to earlier variables. Nothing is executed: what stands in a condition or a loop is not understood. InputError for a
/// quotation or a brace without its end, and for a reference that leads to itself or to a line below. `outside`:
/// variables that come from outside the file, which a line of it may set anew; they are not among those that are
/// returned.
ShellVariables read_shell_variables(std::string_view text, const std::string& file,
                                    std::map<std::string, std::string> outside = {});

} // namespace stagecraft
