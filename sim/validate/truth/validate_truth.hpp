// Tables of runs that others measured, predicted row by row: docs/validation/measured-runs.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>

#include "sim/report/validation.hpp"
#include "sim/validate/truth/validate_options.hpp"

namespace stagecraft {

/// Whether the file is such a table, or the folder has one.
bool is_truth(const std::filesystem::path& path);

/// Predicts every row of such tables and folders, as of one table each; what cannot be predicted is listed with the
/// reason. InputError as read_truth() throws it, for a table that comes twice, and for a filter by a column that there
/// is not.
Validation validate_truth(std::span<const std::filesystem::path> paths, const ValidateOptions& options);

} // namespace stagecraft
