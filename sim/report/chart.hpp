// A chart as data: what is drawn on which axes. The page draws it in the browser, gnuplot draws it for papers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "sim/base/system/figure.hpp"

namespace stagecraft {

/// An axis of numbers, or of names at 0, 1, 2, …
struct ChartAxis {
  std::string title;        ///< with its unit: "iteration [s]"
  bool logarithmic = false; ///< where the marks are far enough apart, see is_logarithmic()
  bool from_zero = false;
  std::vector<std::string> names = {}; ///< in order; on a vertical axis the first is on top
};

enum class Look {
  points,
  line,  ///< through points, which are drawn too
  steps, ///< each value holds until the next point
  front, ///< steps through points of other series, with circles around those
  bars,  ///< from 0 along x, each at its name on y; or from Mark::begin, in a waterfall
  cells, ///< coloured by value, at a name on x and a name on y
  guide, ///< a thin line for comparison
  faint, ///< points in grey, for comparison
};

/// A point on a chart with what it shows.
struct Mark {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  double x = 0, y = 0;
  std::string text = {};            ///< shown when the reader points at the mark
  double low = kNone, high = kNone; ///< interval of a bar, along x
  double value = kNone;             ///< value of a cell
  double begin = 0;                 ///< where a bar begins
  std::string label = {};           ///< stands at the end of a bar
  int color = -1;                   ///< number of the bar's own colour; -1: that of its series
  std::string besides = {};         ///< stands in the column Chart::besides of the CSV
};

struct ChartSeries {
  std::string name; ///< shown in the key; "" leaves it out
  Look look = Look::points;
  std::vector<Mark> marks;
  int color = -1; ///< number of the colour on the page; -1: the position among the series
};

/// A line across a chart of bars, at a value of x, with its name.
struct ChartLine {
  double x = 0;
  std::string text;
};

struct Chart {
  std::string name; ///< name of its files
  std::string title;
  ChartAxis x, y;
  std::string value = {};     ///< title of the colour scale, with its unit
  bool least_is_best = false; ///< cells: the least value gets the brightest colour, else the largest
  std::string interval = {};  ///< what Mark::low and high mean
  std::vector<ChartLine> lines = {};
  bool wide = false; ///< takes the whole width of the page
  std::vector<ChartSeries> series = {};
  std::string choice = {}; ///< charts with the same choice share a place on the page, which shows one of them
  std::string note = {};   ///< what a reader must know about the chart: a sentence, or several on lines of their own
  std::vector<Chart> all = {}; ///< none, or one: the chart with all points, where this one leaves some out
  std::string besides = {};    ///< a further column of the CSV, of what the picture does not show
};

/// Whether an axis that asks to be logarithmic is drawn so: marks are above 0, and far apart or whole numbers.
bool is_logarithmic(const Chart& chart, bool vertical);

/// The Pareto front: the marks for which no other is at most as large in both coordinates. Sorted by x.
std::vector<Mark> front_of(std::vector<Mark> marks);

/// The chart as a gnuplot figure.
Figure figure_of(const Chart& chart);
std::vector<Figure> figures_of(const std::vector<Chart>& charts);

} // namespace stagecraft
