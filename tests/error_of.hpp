// A helper for tests of bad input.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/base/error.hpp"

namespace stagecraft::test {

/// The text of the InputError that `call` throws, "" where it throws none.
template <class Call> std::string error_of(const Call& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

} // namespace stagecraft::test
