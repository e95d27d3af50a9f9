// stagecraft: the command line. It reads flags, calls one command and turns what it throws into an exit status.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <new>

#include "sim/app/commands.hpp"

namespace stagecraft {

CLI::App& CommandList::add(const char* name, const char* help, int (*run)(const Options&)) {
  commands_.push_back({app_.add_subcommand(name, help)->group(group), run});
  return *commands_.back().app;
}

int CommandList::run_given() const {
  for (const Command& command : commands_) {
    if (command.app->parsed()) {
      return command.run(options);
    }
  }
  return kBadInput;
}

namespace {

int run(int count, char** arguments) {
  Options options;
  CLI::App app{"Rehearse a training run before buying the cluster.", "stagecraft"};
  app.set_version_flag("--version", "stagecraft " STAGECRAFT_VERSION);
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "help of every command");
  CommandList commands(app, options);
  add_run_commands(commands);
  add_study_commands(commands);
  add_real_commands(commands);
  add_file_commands(commands);
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& failure) {
    return app.exit(failure) == 0 ? kDone : kBadInput;
  }
  return commands.run_given();
}

} // namespace
} // namespace stagecraft

int main(int count, char** arguments) {
  std::signal(SIGINT, [](int) { _exit(stagecraft::kInterrupted); });
  try {
    return stagecraft::run(count, arguments);
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
