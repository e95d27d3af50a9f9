// Validation against measured runs: one row per kind of measured data, told apart by its files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "sim/report/validation.hpp"

namespace stagecraft {

struct ValidatorRow {
  std::string_view name, help;
  bool (*accepts)(const std::filesystem::path& path); ///< looks at names and headers only
  Validation (*validate)(const std::filesystem::path& path);
};
std::span<const ValidatorRow> validators();

/// Predicts what the data at `path` measured, by the first row that accepts it. InputError where none does, or the data
/// is malformed.
Validation validate(const std::filesystem::path& path);

bool is_perseus(const std::filesystem::path& folder);
/// Pipelines measured under 1F1B at many clocks (Chung et al., SOSP 2024): iteration times and energies.
/// docs/validation.md.
Validation validate_perseus(const std::filesystem::path& folder);

bool is_runs(const std::filesystem::path& path);
/// Runs that `execute` wrote, a file or a folder of them: iteration times in the model's own scale, predicted from the
/// times of their parts; how well the prediction ranks the runs of one model on one platform. docs/validation.md.
Validation validate_runs(const std::filesystem::path& path);

} // namespace stagecraft
