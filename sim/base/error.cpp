// SPDX-License-Identifier: Apache-2.0
#include "sim/base/error.hpp"

namespace stagecraft {

std::string to_text(const Where& where) {
  if (where.line == 0) {
    return where.file;
  }
  return where.file + ":" + std::to_string(where.line) + ":" + std::to_string(where.column);
}

InputError::InputError(const Where& where, const std::string& text)
    : std::runtime_error(to_text(where) + ": " + text) {}

void check(bool holds, const char* what) {
  if (!holds) {
    throw std::logic_error(what);
  }
}

} // namespace stagecraft
