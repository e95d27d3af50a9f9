// Fitting times by bytes: copies, collectives, operators that the memory bounds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/platform/kernel_fits.hpp"

namespace stagecraft::fit {

struct LinePoint {
  double bytes = 0;
  Seconds time;
};

/// At most `segments` segments, each start + bytes x slope with neither negative, of the least relative errors
/// (squares, reweighted towards absolute errors); where one ends is chosen exactly, by dynamic programming. A segment
/// covers two sizes or more where there are as many.
PiecewiseLine fit_line(std::vector<LinePoint> points, int segments);

/// From the median of each size straight to the next; slopes are not negative.
PiecewiseLine interpolate(std::vector<LinePoint> points);

/// Of up to 8 segments and the interpolation, that of the least error at sizes held back, which is its `error`.
PiecewiseLine fit_line_validated(const std::vector<LinePoint>& points, std::uint64_t seed);

} // namespace stagecraft::fit
