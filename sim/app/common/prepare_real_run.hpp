// A plan and a schedule made ready to run for real: what execute runs here, and export pipeline elsewhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/app/common/given_run.hpp"
#include "sim/app/common/real_run.hpp"

namespace stagecraft {

/// What --plan or --strategy and --schedule say, ready to run for real; or why it cannot.
struct PreparedRealRun {
  Study study;
  GivenPlan given;
  std::optional<ScheduleFile> orders;
  std::vector<Prepared> prepared;

  const Run& run() const { return prepared.front().run; }
};

/// Replays what the flags ask for; with `options.measured` by the plan that comes of real runs. `quiet`: without a
/// remark on each of those. InputError where flags do not go together.
PreparedRealRun prepare_real_run(const pipeline::BackendRow& row, Study given_study, const RunOptions& run,
                                 const RealRunOptions& options, bool quiet);

} // namespace stagecraft
