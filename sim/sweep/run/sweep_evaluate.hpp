// From a combination's runs to their results: the work of a sweep's worker.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/study/keys/input_files.hpp"
#include "sim/study/planning/schedule_counts.hpp"
#include "sim/study/scenario.hpp"
#include "sim/sweep/space/sweep.hpp"
#include "sim/sweep/store/sweep_row.hpp"

namespace stagecraft {

/// Some runs of a combination, for an engine to do.
struct CombinationRuns {
  Combination combination;
  std::vector<std::uint32_t> runs; ///< indices into scenarios_of() its study
};

/// The result of a point.
struct PointResult {
  PointStatus status = PointStatus::failed;
  std::string order, reason;
  Figures figures{};
};

/// A sweep, and the settings that apply to all its points.
struct SweepInputs {
  Sweep sweep;
  std::vector<Setting> settings; ///< of the command line
  Folders folders;               ///< with files
};

/// The study of a combination. Settings that choose a model or a platform come before those that change it. Throws
/// InputError.
Study study_of(const SweepInputs& inputs, const Combination& combination);
/// Where the number of micro-batches is an axis of its own, each point has the axis's and no strategy is tried at more.
void keep_to_axes(Study& study, const std::vector<Setting>& settings);

/// Gives the study a point's engine: a name, kEstimate, or "" for the study's own. With another engine than its own the
/// study draws no errors of the cost model.
void set_engine(Study& study, const std::string& engine);

/// The result of a run that was prepared and, unless the engine is kEstimate, replayed.
PointResult result_of(const Study& study, const Prepared& prepared, std::string_view engine);

/// Results of runs, in their order, one combination after the other. `engine` is a name, or "" for the study's own. A
/// failure is a result with its reason; only a crash gives no result. `counts` carries over from one call to the next.
std::vector<PointResult> evaluate(const SweepInputs& inputs, const std::string& engine,
                                  std::span<const CombinationRuns> combinations, ScheduleCounts& counts);

} // namespace stagecraft
