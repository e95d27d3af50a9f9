// A picture of errors over times, drawn by gnuplot.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "calibrate/fit/evaluate.hpp"

namespace stagecraft::fit {

/// Writes errors in percent over measured times, logarithmic, a series per source, as `file` in SVG. Why there is no
/// picture, in one line, where gnuplot is not installed or fails; else "".
std::string draw_residuals(const std::vector<PredictedRow>& rows, const std::string& title,
                           const std::filesystem::path& file);

} // namespace stagecraft::fit
