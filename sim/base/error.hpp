// Errors: where a value stands in its file, what is wrong with it, and results that are infeasible.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace stagecraft {

/// A place in an input: 1-based line and column, 0 where the input has none (a binary file, a command line).
struct Where {
  std::string file;
  int line = 0;
  int column = 0;

  bool operator==(const Where&) const = default;
};

/// "file:line:column", or "file" where there is no line.
std::string to_text(const Where& where);

/// Bad input. what() is "file:line:column: what is wrong; what is allowed": lower case, no full stop.
class InputError : public std::runtime_error {
public:
  InputError(const Where& where, const std::string& text);
};

/// Why something cannot be had here: a value, because a run that does not fit is a result like any other.
struct Infeasible {
  std::string reason;
};

/// Throws std::logic_error unless `holds`: a broken invariant is a bug of ours, never of the input.
void check(bool holds, const char* what);

} // namespace stagecraft
