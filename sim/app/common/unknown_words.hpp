// What to say of a flag or a command that is not ours: what another program calls so, or what is near.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/app/common/call_words.hpp"

namespace stagecraft {

/// What to say of a flag that the command does not have: how we say it where another program calls it so, or the
/// nearest of `known`.
struct UnknownFlag {
  std::string message;
  Words mended; ///< empty: nothing is near
};
UnknownFlag unknown_flag(const Words& words, const std::string& flag, const std::vector<std::string>& known);

/// What to say where the first word is no command: what can be done with that file or name, or the nearest of
/// `commands`.
std::string unknown_command(const Words& words, const std::vector<std::string>& commands);

/// What to do first, for a call of the program alone.
std::string first_steps(const std::string& program);

} // namespace stagecraft
