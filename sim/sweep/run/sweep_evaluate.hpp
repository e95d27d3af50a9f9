// From a combination's runs to their results: what a worker of a sweep does.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/study/input_files.hpp"
#include "sim/study/scenario.hpp"
#include "sim/study/schedule_counts.hpp"
#include "sim/sweep/space/sweep.hpp"
#include "sim/sweep/store/sweep_row.hpp"

namespace stagecraft {

/// Some runs of a combination, to be done by an engine.
struct CombinationRuns {
  Combination combination;
  std::vector<std::uint32_t> runs; ///< indices into scenarios_of() its study
};

/// What came of a point.
struct PointResult {
  PointStatus status = PointStatus::failed;
  std::string order, reason;
  Figures figures{};
};

/// A sweep on top of a study's settings.
struct SweepInputs {
  Sweep sweep;
  std::vector<Setting> settings; ///< of the command line
  Folders folders;               ///< with files
};

/// The study of a combination, with what changes a model or a platform after what says which. Throws InputError.
Study study_of(const SweepInputs& inputs, const Combination& combination);

/// Makes a point's engine the study's: a name, kEstimate, or "" for its own. A first pass by another draws none of the
/// cost model's errors.
void set_engine(Study& study, const std::string& engine);

/// What came of a run that was prepared and, by another engine than kEstimate, replayed.
PointResult result_of(const Study& study, const Prepared& prepared, std::string_view engine);

/// Results of runs, in their order, one combination after the other. `engine` is a name, or "" for the study's own.
/// What fails is a result with its reason; only a crash is none. `counts` is for one call after the other.
std::vector<PointResult> evaluate(const SweepInputs& inputs, const std::string& engine,
                                  std::span<const CombinationRuns> combinations, ScheduleCounts& counts);

} // namespace stagecraft
