// A sweep from its study file to its results on disk: counted, shared out over workers, stored.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "sim/sweep/run/sweep_points.hpp"
#include "sim/sweep/run/sweep_worker.hpp"
#include "sim/sweep/store/sweep_store.hpp"

namespace stagecraft {

struct SweepOptions {
  int workers = 1;
  SweepShard shard;
  bool retry = false;          ///< runs failed points again
  std::filesystem::path study; ///< the study's own file, kept with the files that it names; may be empty
  /// Called with how many points of how many are done, including those of earlier runs. False ends the sweep.
  std::function<bool(std::uint64_t done, std::uint64_t all)> progress;
};

/// How the sweep ended.
struct SweepOutcome {
  std::int64_t sweep = 0;                ///< in the store
  std::uint64_t computed = 0, found = 0; ///< points done now, and before
  std::uint64_t feasible = 0, infeasible = 0, failed = 0;
  bool whole = true; ///< false: `progress` ended the sweep
};

/// Runs all points that the store lacks. Throws InputError.
SweepOutcome run_sweep(SweepPoints& points, SweepStore& store, const SweepOptions& options);

} // namespace stagecraft
