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

} // namespace stagecraft
