// Running another program on a text and reading what it prints.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stagecraft {

/// A program with its arguments, found as a shell finds it; relative paths start at `folder`.
struct Command {
  std::vector<std::string> words;
  std::filesystem::path folder;
  double seconds = 60; ///< it and its children are killed after so long
};

/// The outcome of a command: its standard output, or one line that says why there is none (it failed, was killed, took
/// too long, printed more than 64 MiB), with the last line of its standard error.
struct CommandAnswer {
  std::string output;
  std::string why_not;
};

/// Runs a command with `input` as its standard input. std::runtime_error when no process can be made.
CommandAnswer run_command(const Command& command, const std::string& input);

} // namespace stagecraft
