// The words of a call, what they say and what they lack.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// The words of a call: the program, a command, and what follows.
using Words = std::vector<std::string>;

bool is_flag(const std::string& word);
/// "--set" of "--set=KEY=VALUE".
std::string flag_of(const std::string& word);
/// Whether a flag is given, with its value behind it or in the same word.
bool gives(const Words& words, std::string_view flag);
/// "" where the first word is a flag.
std::string command_of(const Words& words);
/// The first word behind the command that is neither a flag nor, as it may be, a flag's value; "" where there is none.
std::string first_argument(const Words& words);
/// The file or name that the command works on: its first argument, of `export` the one behind the form.
std::string input_argument(const Words& words);
/// The call with all that its command needs and it lacks; nothing where it lacks nothing.
std::optional<Words> completed(const Words& words);
/// "did you mean: CALL" as a line.
std::string did_you_mean(const Words& words);

} // namespace stagecraft
