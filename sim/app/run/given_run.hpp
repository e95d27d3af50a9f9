// The run that --strategy or --plan and --schedule describe, for replay, explain, execute, train and export.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "sim/app/run/given_study.hpp"
#include "sim/schedule/format/schedule_file.hpp"
#include "sim/study/scenario.hpp"

namespace stagecraft {

/// The values of --strategy, --plan, --plan-format and --schedule.
struct RunOptions {
  std::string strategy, plan, plan_format;
  std::string schedule; ///< a name, or a .csv file
};

/// --strategy, --plan and --plan-format.
void add_plan_flags(Flags& flags, RunOptions& options);
void add_plan_format_flag(Flags& flags, std::string& format);
/// --schedule of a run: a name or a file.
void add_run_schedule_flag(Flags& flags, std::string& schedule);
/// --schedule of a plan, a name or a file: the schedule under which the plan must fit memory.
void add_memory_schedule_flag(Flags& flags, std::string& schedule);

/// The strategy or plan that --strategy or --plan gives.
struct GivenPlan {
  const StrategyRow* strategy = nullptr; ///< null: the plan is from a file
  Plan plan;                             ///< from the file

  /// Puts it into the scenario, which must not outlive it.
  void put_into(Scenario& scenario) const;
};

/// A plan's file, in the form that is given, as a study lists it; its path is from where the program is called.
yaml::Node plan_node(const std::string& file, const std::string& format);

/// Reads --strategy or --plan, whichever is given; InputError where both or neither are.
GivenPlan given_plan(const RunOptions& options, const Study& study);

/// The orders of a schedule file, where `name` is one (.csv).
std::optional<ScheduleFile> given_orders(const std::string& name);

/// What --schedule gives: a name, or a file (.csv) of orders. Where it is empty: what the framework's configuration
/// asks for, a file of passes too, or 1f1b, whose memory rules a plan without a schedule follows.
struct GivenSchedule {
  const ScheduleRow* row = nullptr;    ///< null: it is of a file
  std::optional<ScheduleFile> file;    ///< that --schedule names
  const Schedule* of_config = nullptr; ///< that the configuration names; of the study

  const Schedule* orders() const { return file ? &file->schedule : of_config; }
  std::string_view name() const { return row != nullptr ? row->name : std::string_view(orders()->name); }
  /// Puts it into the scenario, which must not outlive it.
  void put_into(Scenario& scenario) const;
};

/// InputError for an unknown name, and where the file cannot be read.
GivenSchedule given_schedule(const std::string& name, const Study& study);
/// The same; InputError, too, where the orders of the file cannot run.
GivenSchedule given_runnable_schedule(const std::string& name, const Study& study);

/// Adds the files of --plan and --schedule to those that a study read.
void add_given_files(const RunOptions& options, std::vector<std::string>& inputs);

/// Says on stderr what a reader must know of the plan; nothing for "".
void remark_note(const std::string& note);

/// The run that --strategy or --plan and --schedule ask for, replayed; or why it is not feasible.
Prepared replay_given(const RunOptions& options, const Study& study);

} // namespace stagecraft
