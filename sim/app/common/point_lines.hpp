// Points of a sweep as lines of a file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "sim/sweep/store/sweep_row.hpp"

namespace stagecraft {

/// A point as docs/formats/sweep.md has it; unknown figures are null.
nlohmann::ordered_json json_of(const PointRow& row);

/// A CSV table of points with a column for each axis key: its first line, and the line of a point.
std::string csv_head(const std::vector<std::string>& axes);
std::string csv_line(const PointRow& row, const std::vector<std::string>& axes);

} // namespace stagecraft
