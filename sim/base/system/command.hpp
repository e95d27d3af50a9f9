// Running another program on a text and reading what it prints.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/base/limits.hpp"

namespace stagecraft {

/// A program with its arguments, found as a shell finds it; relative paths start at `folder`.
struct Command {
  std::vector<std::string> words;
  std::filesystem::path folder;
  double seconds = limits::kCommandSeconds; ///< it and its children are killed after so long
  bool confined = false;                    ///< run as what a stranger wrote: sim/base/system/confinement.hpp
  int memory_mebibytes = limits::kCommandMemoryMebibytes; ///< address space of each process, where confined
};

/// The outcome of a command: its standard output, or one line that says why there is none (it failed, was killed, took
/// too long, printed too much), with the last line of its standard error.
struct CommandAnswer {
  std::string output;
  std::string why_not;
};

/// Runs a command with `input` as its standard input. std::runtime_error when no process can be made.
CommandAnswer run_command(const Command& command, const std::string& input);

/// The command line as a shell reads it, in printable ASCII on one line, so that what a terminal shows is what is run.
std::string to_text(const Command& command);

} // namespace stagecraft
