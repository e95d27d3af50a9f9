// Makes a plan and a schedule ready to run for real: `execute` runs them here, `export pipeline` elsewhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/app/run/given_run.hpp"
#include "sim/app/run/real_run.hpp"

namespace stagecraft {

/// The run that --plan or --strategy and --schedule ask for, ready to run for real; or why it cannot.
struct PreparedRealRun {
  Study study;
  GivenPlan given;
  GivenSchedule schedule;
  std::vector<Prepared> prepared;

  const Run& run() const { return prepared.front().run; }
};

/// Prepares and replays the run that the flags ask for. With `options.measured` real runs decide its plan, with a
/// remark on each unless `quiet`. InputError where flags contradict each other.
PreparedRealRun prepare_real_run(const pipeline::BackendRow& row, Study given_study, const RunOptions& run,
                                 const RealRunOptions& options, bool quiet);

} // namespace stagecraft
