// What a user who is refused probably wanted: the nearest right call, whole, to copy.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "sim/app/common/call_words.hpp"

namespace stagecraft {

/// What is said in place of a message, or "" where the message says it best; and what is said behind it, in whole
/// lines.
struct Advice {
  std::string instead, after;
};

/// Advice on a call that `message` refuses: the call with a typing error mended, what can be done with a file of
/// another kind than the command takes, or the call with what it lacks.
Advice advice_on(const Words& words, std::string_view message);

} // namespace stagecraft
