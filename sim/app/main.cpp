// stagecraft: the command line. It reads flags, calls one command and turns what it throws into an exit status.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <new>
#include <span>

#include "sim/app/commands.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/common/program.hpp"
#include "sim/base/error.hpp"
#include "sim/base/interrupt.hpp"

namespace stagecraft {
namespace {

// Only the command that is run, and help of all, need a command's flags.
bool needs_flags(const CommandRow& row, std::span<const char* const> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return word == row.name || word.starts_with("--help-all"); });
}

ExitStatus run(int count, const char* const* words) {
  CommandLine line("stagecraft", "Rehearse a training run before buying the cluster.",
                   "stagecraft " + std::string(program_version()));
  std::vector<std::pair<Flags, Job>> jobs;
  for (const CommandRow& row : commands()) {
    Flags flags = line.flags().command(row.name, row.help, row.group);
    jobs.emplace_back(flags, needs_flags(row, {words, words + count}) ? row.declare(flags) : Job());
  }
  if (const std::optional<ExitStatus> ended = line.read(count, words)) {
    return *ended;
  }
  for (const auto& [flags, job] : jobs) {
    if (flags.given()) {
      return job();
    }
  }
  return kBadInput;
}

void handle_interrupts() {
  on_interrupt([] { _exit(kInterrupted); });
}

// The system calls this before it makes ready the libraries, of which there are many: an interrupt meanwhile is one
// too.
[[gnu::section(".preinit_array"), gnu::used]] void (*const kBeforeLibraries)() = handle_interrupts;

} // namespace
} // namespace stagecraft

int main(int count, char** words) {
  try {
    return stagecraft::run(count, words);
  } catch (const stagecraft::InputError& failure) {
    stagecraft::remark("error: " + std::string(failure.what()) + "\n");
    return stagecraft::kBadInput;
  } catch (const std::bad_alloc&) {
    std::cerr << "error: this takes more memory than there is\n";
    return stagecraft::kBadInput;
  } catch (const std::exception& failure) {
    stagecraft::remark("stagecraft: a bug, please report it: " + std::string(failure.what()) + "\n");
    return stagecraft::kBug;
  }
}
