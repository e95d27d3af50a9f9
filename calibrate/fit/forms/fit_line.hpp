// Fitting times as functions of bytes: copies, collectives, operators bound by memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/platform/fits/kernel_fits.hpp"

namespace stagecraft::fit {

struct LinePoint {
  double bytes = 0;
  Seconds time;
};

/// At most `segments` segments, each start + bytes x slope with neither negative, with the least relative errors
/// (squared, reweighted to approach absolute errors). Dynamic programming finds the best ends of the segments. A
/// segment covers at least two sizes if there are enough.
PiecewiseLine fit_line(std::vector<LinePoint> points, int segments);

/// Segments from the median of each size to that of the next; slopes are never negative.
PiecewiseLine interpolate(std::vector<LinePoint> points);

/// The best of 1 to 8 segments and the interpolation, by the error at sizes held back, which it keeps as `error`.
PiecewiseLine fit_line_validated(const std::vector<LinePoint>& points, std::uint64_t seed);

/// Segments between knots at measured sizes, for collectives: a library changes its protocol with the size, and between
/// two changes the time is a line. Of several times of a size the least counts, and none is more than that of a larger
/// size, since what disturbs a collective only makes it longer. A size whose time the chord of its neighbours meets
/// within 2 % is no knot. Below the first size the first time holds, beyond the last one the last slope goes on. Where
/// two sizes lie more than a factor of two apart and the library is said to change at one between them (`changes`,
/// ascending), the time up to there is half way from the chord to the line of the two sizes below, and from there on to
/// that of the two above. The `error` is that at every second size, of what the other sizes alone give. Fewer than
/// three sizes: fit_line().
PiecewiseLine fit_collective(std::vector<LinePoint> points, const std::vector<double>& changes = {});

} // namespace stagecraft::fit
