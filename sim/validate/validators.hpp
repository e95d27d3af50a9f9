// Validation against measured runs: one row per kind of measured data; the files tell the kind.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "sim/report/validation.hpp"
#include "sim/validate/truth/validate_options.hpp"

namespace stagecraft {

struct ValidatorRow {
  std::string_view name, help;
  bool (*accepts)(const std::filesystem::path& path); ///< looks at names and headers only
  Validation (*validate)(const std::filesystem::path& path, const ValidateOptions& options);
};
std::span<const ValidatorRow> validators();

/// Predicts what the data at `path` measured, by the first row that accepts it. InputError where no row does, or where
/// the data is malformed.
Validation validate(const std::filesystem::path& path, const ValidateOptions& options = {});

/// The same of one path, or of several tables of measured runs and folders of them, each of which is evidence for the
/// others' intervals and baselines. InputError also for a table that comes twice.
Validation validate(std::span<const std::filesystem::path> paths, const ValidateOptions& options = {});

bool is_perseus(const std::filesystem::path& folder);
/// Pipelines measured under 1F1B at many clocks (Chung et al., SOSP 2024): iteration times and energies.
/// docs/validation/clocks.md.
Validation validate_perseus(const std::filesystem::path& folder, const ValidateOptions& options);

bool is_runs(const std::filesystem::path& path);
/// Runs that `execute` wrote, a file or a folder of them: iteration times at the model's own scale, predicted from the
/// times of their parts, and how well the predictions rank the runs of one model on one platform.
/// docs/validation/real-runs.md.
Validation validate_runs(const std::filesystem::path& path, const ValidateOptions& options);

bool is_sailor(const std::filesystem::path& folder);
/// Plans that Sailor measured on nodes alike and unlike (Strati et al., SOSP 2025): iteration times and peak memory, by
/// the measured times of layers and networks. docs/validation/unlike-nodes.md.
Validation validate_sailor(const std::filesystem::path& folder, const ValidateOptions& options);

bool is_witness(const std::filesystem::path& path);
/// What a framework measured of a model on one device, a file or a folder of them: each layer's passes, the step and
/// the peak of memory, by the model's profile or else by the device's fits.
/// docs/validation/framework-on-one-device.md.
Validation validate_witness(const std::filesystem::path& path, const ValidateOptions& options);

} // namespace stagecraft
