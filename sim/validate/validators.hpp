// Validation against measured runs: one row per kind of measured data, told apart by its files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "sim/report/validation.hpp"

namespace stagecraft {

struct ValidatorRow {
  std::string_view name, help;
  bool (*accepts)(const std::filesystem::path& path); ///< looks at names and headers only
  /// `shipped` as Folders::shipped.
  Validation (*validate)(const std::filesystem::path& path, const std::filesystem::path& shipped);
};
std::span<const ValidatorRow> validators();

/// Predicts what the data at `path` measured, by the first row that accepts it. InputError where none does, or the data
/// is malformed. What the data names is looked for beside it and among what is `shipped`.
Validation validate(const std::filesystem::path& path, const std::filesystem::path& shipped = {});

/// The file at `path`, or those of the folder there by name, of which `accepts` says yes.
std::vector<std::filesystem::path> files_at(const std::filesystem::path& path,
                                            bool (*accepts)(const std::filesystem::path& file));

bool is_perseus(const std::filesystem::path& folder);
/// Pipelines measured under 1F1B at many clocks (Chung et al., SOSP 2024): iteration times and energies.
/// docs/validation.md.
Validation validate_perseus(const std::filesystem::path& folder, const std::filesystem::path& shipped);

bool is_runs(const std::filesystem::path& path);
/// Runs that `execute` wrote, a file or a folder of them: iteration times in the model's own scale, predicted from the
/// times of their parts; how well the prediction ranks the runs of one model on one platform. docs/validation.md.
Validation validate_runs(const std::filesystem::path& path, const std::filesystem::path& shipped);

bool is_witness(const std::filesystem::path& path);
/// What a framework measured of a model on one device, a file or a folder of them: each layer's passes, the step and
/// the peak of memory, by the model's profile or else by the device's fits. docs/validation.md.
Validation validate_witness(const std::filesystem::path& path, const std::filesystem::path& shipped);

} // namespace stagecraft
