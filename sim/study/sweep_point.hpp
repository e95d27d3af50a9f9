// From a combination's runs to their results: what a worker of a sweep does.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/study/compare.hpp"
#include "sim/study/input_files.hpp"
#include "sim/study/sweep_store.hpp"

namespace stagecraft {

/// A run of a combination, to be done by an engine.
struct Point {
  std::uint64_t number = 0; ///< of the combination
  std::uint32_t run = 0;    ///< index into scenarios_of() the combination's study
};

/// What came of a point.
struct PointResult {
  PointStatus status = PointStatus::failed;
  std::string order, reason;
  Figures figures{};
};

/// The engine that a point is done by where it is not replayed at all.
inline constexpr std::string_view kEstimate = "estimate";

/// A sweep on top of a study's settings.
struct SweepInputs {
  Sweep sweep;
  std::vector<Setting> settings; ///< of the command line
  Folders folders;               ///< with files
};

/// The study of a combination. Throws InputError.
Study study_of(const SweepInputs& inputs, const Combination& combination);

/// Results of points, in their order; those of one combination stand together. `engine` is a name, or "" for the
/// study's own. What fails is a result with its reason; only a crash is none. `counts` is for one call after the other.
std::vector<PointResult> evaluate(const SweepInputs& inputs, const std::string& engine, std::span<const Point> points,
                                  ScheduleCounts& counts);

/// Points and results as bytes, for pipes.
std::string to_bytes(const std::string& engine, std::span<const Point> points);
std::pair<std::string, std::vector<Point>> points_from(const std::string& bytes);
std::string to_bytes(std::span<const PointResult> results);
std::vector<PointResult> results_from(const std::string& bytes);

} // namespace stagecraft
