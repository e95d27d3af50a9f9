// A condition's tree, for the code that reads, evaluates and checks it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "sim/sweep/space/sweep_condition.hpp"

namespace stagecraft {

/// An operator with its operands, a known word, or a value.
struct Condition::Term {
  std::string_view operation; ///< "" for a word or a value
  int known = -1;
  ConditionValue value;
  std::vector<std::unique_ptr<Term>> operands;
  std::size_t begin = 0, end = 0; ///< in the condition's text

  bool joins_conditions() const { return operation == "and" || operation == "or"; }
  bool is_equality() const { return operation == "==" || operation == "!="; }
  bool is_arithmetic() const { return operation == "+" || operation == "-" || operation == "*" || operation == "/"; }
};

} // namespace stagecraft
