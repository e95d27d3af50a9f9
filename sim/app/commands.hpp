// The commands of the program, by what they are about, and the flags of each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/flags.hpp"

namespace stagecraft {

/// What was added to the command line so far.
class CommandList {
public:
  CommandList(CLI::App& app, Options& given) : options(given), app_(app) {}

  CLI::App& add(const char* name, const char* help, int (*run)(const Options&));
  /// Runs the command that was given.
  int run_given() const;

  Options& options;
  std::string group; ///< in the help, of what is added next

private:
  struct Command {
    CLI::App* app;
    int (*run)(const Options&);
  };
  CLI::App& app_;
  std::vector<Command> commands_;
};

void add_run_commands(CommandList& list);   ///< compare, plan, replay, explain, schedule, check
void add_study_commands(CommandList& list); ///< sweep, points, merge, judge, adapt, report
void add_real_commands(CommandList& list);  ///< execute, train, validate, calibrate
void add_file_commands(CommandList& list);  ///< show, list, import, export

} // namespace stagecraft
