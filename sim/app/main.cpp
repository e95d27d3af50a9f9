// stagecraft: the command line. It reads flags, calls one command and turns what it throws into an exit status.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <new>

#include "sim/app/commands.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/common/program.hpp"
#include "sim/base/error.hpp"

namespace stagecraft {
namespace {

ExitStatus run(int count, const char* const* words) {
  CommandLine line("stagecraft", "Rehearse a training run before buying the cluster.",
                   "stagecraft " + std::string(program_version()));
  std::vector<std::pair<Flags, Job>> jobs;
  for (const CommandRow& row : commands()) {
    Flags flags = line.flags().command(row.name, row.help, row.group);
    jobs.emplace_back(flags, row.declare(flags));
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

} // namespace
} // namespace stagecraft

int main(int count, char** words) {
  std::signal(SIGINT, [](int) { _exit(stagecraft::kInterrupted); });
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
