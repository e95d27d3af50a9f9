// What --strategy or --plan, and --schedule, say: the one run of replay, explain, execute, train and export.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "sim/app/options.hpp"
#include "sim/schedule/format/schedule_file.hpp"
#include "sim/study/scenario.hpp"

namespace stagecraft {

/// What --strategy or --plan says.
struct GivenPlan {
  const StrategyRow* strategy = nullptr; ///< none: of a file
  Plan plan;                             ///< of the file

  /// Has the scenario, which must not outlive this, use it.
  void put_into(Scenario& scenario) const;
};

/// Reads the one of --strategy and --plan that is there; InputError where both are or none.
GivenPlan given_plan(const Options& options, const Study& study);

/// The orders of a schedule's file, where `name` is one: .csv.
std::optional<ScheduleFile> given_orders(const std::string& name);

/// The schedule named; that of 1f1b where none is, whose memory rules are those of a plan without one.
const ScheduleRow& given_schedule(const Options& options);

/// Adds the files of --plan and --schedule to those that a study read.
void add_given_files(const Options& options, std::vector<std::string>& inputs);

/// The run that --strategy or --plan and --schedule ask for, replayed; or why it is not feasible.
Prepared replay_given(const Options& options, const Study& study);

} // namespace stagecraft
