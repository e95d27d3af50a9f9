// What a file or a name is, told by its content, and what can be done with it: whole commands to copy.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// A call of the program, without the program's name, and what it is good for in a few words.
struct Call {
  std::vector<std::string> words;
  std::string purpose;
};

/// A file, or a shipped name, that was recognised.
struct KnownInput {
  std::string name;                            ///< as given; of a folder, the file in it that is meant
  std::string what;                            ///< "is a study"
  std::vector<Call> calls;                     ///< the most likely first
  std::vector<std::string_view> commands = {}; ///< those that take such a file first
};

/// What this file, folder or shipped name is, by its beginning; nothing where that shows no kind that is known.
std::optional<KnownInput> known_input(const std::string& name);

/// Calls as lines to copy, each with its purpose as a comment; `program` is the name that the program was called by.
std::string lines_of(const std::vector<Call>& calls, const std::string& program);

} // namespace stagecraft
