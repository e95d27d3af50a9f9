// Points of a sweep as lines of a file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "sim/sweep/store/sweep_row.hpp"

namespace stagecraft {

/// As docs/formats/sweep.md has it; figures that are not known are null.
nlohmann::ordered_json json_of(const PointRow& row);

/// A table of points by the keys of axes: its first line, and a point's.
std::string csv_head(const std::vector<std::string>& axes);
std::string csv_line(const PointRow& row, const std::vector<std::string>& axes);

} // namespace stagecraft
