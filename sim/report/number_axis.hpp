// Axes of numbers in figures: their range and where numbers stand.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "sim/report/chart.hpp"

namespace stagecraft {

/// The range of the values of marks.
struct Extent {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  bool whole = true; ///< all are whole numbers
};

/// The range of `value(mark)` over the marks of a chart, of those that have one.
template <class Value> Extent extent_of(const Chart& chart, Value value) {
  Extent extent;
  for (const ChartSeries& series : chart.series) {
    for (const Mark& mark : series.marks) {
      const double number = value(mark);
      if (std::isfinite(number)) {
        extent.low = std::min(extent.low, number);
        extent.high = std::max(extent.high, number);
        extent.whole = extent.whole && number == std::floor(number);
      }
    }
  }
  return extent;
}

/// A number as figures write it.
std::string figure_number(double value);
/// gnuplot's command for the range of an axis: "x", "y", "cb".
std::string range_command(const char* axis, double low, double high);
/// gnuplot's commands for an axis by the logarithm: numbers at `tics`, or at 1, 2 and 5 times each power of ten; only
/// at the powers where there are many; at equal distances where fewer than two would stand within the extent.
std::string logarithmic_commands(const Extent& extent, const char* axis, const std::vector<double>& tics = {});
/// gnuplot's commands for an axis of numbers. Points keep a distance from its ends, so that none is cut; the values of
/// a curve stand below it where they are few.
std::string number_axis_commands(const Chart& chart, bool vertical);

} // namespace stagecraft
