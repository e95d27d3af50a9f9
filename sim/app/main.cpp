// stagecraft: the command line. It reads flags, calls one command and turns what it throws into an exit status.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <new>

#include "sim/app/commands.hpp"
#include "sim/app/common/advice.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/common/program.hpp"
#include "sim/app/common/unknown_words.hpp"
#include "sim/base/error.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/system/interrupt.hpp"

namespace stagecraft {
namespace {

// Only the command that is run, and help of all, need a command's flags.
bool needs_flags(const CommandRow& row, const Words& words) {
  return std::any_of(words.begin() + 1, words.end(),
                     [&](const std::string& word) { return word == row.name || word.starts_with("--help-all"); });
}

// "help compare" as "compare --help", and the like.
Words in_flags(Words words) {
  if (words.size() > 1 && words[1] == "help") {
    words.erase(words.begin() + 1);
    words.emplace_back("--help");
  } else if (words.size() == 3 && words[2] == "help") {
    words[2] = "--help";
  } else if (words.size() == 2 && words[1] == "version") {
    words[1] = "--version";
  }
  return words;
}

ExitStatus run(const Words& words) {
  CommandLine line("stagecraft", "Rehearse a training run before buying the cluster.",
                   "stagecraft " + std::string(program_version()));
  std::vector<std::pair<Flags, Job>> jobs;
  for (const CommandRow& row : commands()) {
    Flags flags = line.flags().command(row.name, row.help, row.group);
    flags.add_example(row.example);
    jobs.emplace_back(flags, needs_flags(row, words) ? row.declare(flags) : Job());
  }
  const std::vector<std::string> names = names_of(commands());
  if (words.size() == 1) {
    remark(first_steps(words.front()));
    return kBadInput;
  }
  if (!words[1].starts_with('-') && std::find(names.begin(), names.end(), words[1]) == names.end()) {
    remark(unknown_command(words, names));
    return kBadInput;
  }
  if (const std::optional<ExitStatus> ended = line.read(words)) {
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

int main(int count, char** arguments) {
  const stagecraft::Words words = stagecraft::in_flags({arguments, arguments + count});
  try {
    return stagecraft::run(words);
  } catch (const stagecraft::InputError& failure) {
    const stagecraft::Advice advice = stagecraft::advice_on(words, failure.what());
    const std::string message = advice.instead.empty() ? failure.what() : advice.instead;
    stagecraft::remark("error: " + message + "\n" + advice.after);
    return stagecraft::kBadInput;
  } catch (const std::filesystem::filesystem_error& failure) { // what the system refuses is no bug
    stagecraft::remark("error: " + failure.path1().string() + ": " + failure.code().message() + "\n");
    return stagecraft::kBadInput;
  } catch (const std::bad_alloc&) {
    std::cerr << "error: this takes more memory than there is\n";
    return stagecraft::kBadInput;
  } catch (const std::exception& failure) {
    stagecraft::remark("stagecraft: a bug, please report it: " + std::string(failure.what()) + "\n");
    return stagecraft::kBug;
  }
}
