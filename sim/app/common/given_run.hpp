// What --strategy or --plan, and --schedule, say: the one run of replay, explain, execute, train and export.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "sim/app/common/given_study.hpp"
#include "sim/schedule/format/schedule_file.hpp"
#include "sim/study/scenario.hpp"

namespace stagecraft {

/// What --strategy or --plan, and --schedule, say.
struct RunOptions {
  std::string strategy, plan, plan_format;
  std::string schedule; ///< a name, or a file: .csv
};

/// --strategy, --plan and --plan-format.
void add_plan_flags(Flags& flags, RunOptions& options);
void add_plan_format_flag(Flags& flags, std::string& format);
/// --schedule of a run: a name or a file.
void add_run_schedule_flag(Flags& flags, std::string& schedule, bool required = true);
/// --schedule of a plan: whose memory it must fit.
void add_memory_schedule_flag(Flags& flags, std::string& schedule);

/// What --strategy or --plan says.
struct GivenPlan {
  const StrategyRow* strategy = nullptr; ///< none: of a file
  Plan plan;                             ///< of the file

  /// Has the scenario, which must not outlive this, use it.
  void put_into(Scenario& scenario) const;
};

/// Reads the one of --strategy and --plan that is there; InputError where both are or none.
GivenPlan given_plan(const RunOptions& options, const Study& study);

/// The orders of a schedule's file, where `name` is one: .csv.
std::optional<ScheduleFile> given_orders(const std::string& name);

/// The schedule named; 1f1b where none is, whose memory rules are those of a plan without a schedule.
const ScheduleRow& given_schedule(const std::string& name);

/// Adds the files of --plan and --schedule to those that a study read.
void add_given_files(const RunOptions& options, std::vector<std::string>& inputs);

/// The run that --strategy or --plan and --schedule ask for, replayed; or why it is not feasible.
Prepared replay_given(const RunOptions& options, const Study& study);

} // namespace stagecraft
