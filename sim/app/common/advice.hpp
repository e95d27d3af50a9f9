// What a user who is refused probably wanted: the nearest right call, whole, to copy.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// The words of a call: the program, a command, and what follows.
using Words = std::vector<std::string>;

/// What is said in place of a message, or "" where the message says it best; and what is said behind it, in whole
/// lines.
struct Advice {
  std::string instead, after;
};

/// Advice on a call that `message` refuses: the call with a typing error mended, what can be done with a file of
/// another kind than the command takes, or the call with what it lacks.
Advice advice_on(const Words& words, std::string_view message);

/// The same for a flag that the command does not have, where another program calls so what we call otherwise, or where
/// one of `known` is near.
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

/// "did you mean: CALL" as a line.
std::string did_you_mean(const Words& words);

} // namespace stagecraft
