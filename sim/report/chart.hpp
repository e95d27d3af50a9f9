// A chart as data: what is drawn on which axes. The page draws it in the browser, and figures for papers with gnuplot.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "sim/base/figure.hpp"

namespace stagecraft {

/// An axis of numbers, or of names at 0, 1, 2, …
struct Axis {
  std::string title;        ///< with its unit: "iteration [s]"
  bool logarithmic = false; ///< where the marks are far enough apart, see is_logarithmic()
  bool from_zero = false;
  std::vector<std::string> names = {}; ///< in order; on a vertical axis the first is on top
};

enum class Look {
  points,
  line,  ///< through points that are shown
  steps, ///< holds until the next point
  front, ///< the same, around points of other series
  bars,  ///< from 0 along x, each at its name on y
  cells, ///< coloured by value, at a name on x and one on y
  guide, ///< a thin line to read others by
  faint, ///< points that do not count
};

/// A place on a chart and what is to be said of it.
struct Mark {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  double x = 0, y = 0;
  std::string text = {};            ///< shown where a reader points at it
  double low = kNone, high = kNone; ///< interval of a bar, along x
  double value = kNone;             ///< of a cell
};

struct ChartSeries {
  std::string name; ///< in the key; "": not there
  Look look = Look::points;
  std::vector<Mark> marks;
  int color = -1; ///< its number on the page; -1: by its place among the series
};

struct Chart {
  std::string name; ///< of its files
  std::string title;
  Axis x, y;
  std::string value = {};     ///< what the colour of cells says, with its unit
  bool least_is_best = false; ///< of cells: the brightest colour is that of the best
  std::string interval = {};  ///< what Mark::low and high are
  std::vector<ChartSeries> series = {};
  std::string choice = {};     ///< charts of one choice share a place on the page: one of them is shown
  std::string note = {};       ///< what a reader must know of it, in a sentence or, on lines of their own, several
  std::vector<Chart> all = {}; ///< one, or none: the same of everything, where this leaves something out
};

/// Whether an axis that asks for it is logarithmic: its marks are above 0 and far apart, or whole numbers.
bool is_logarithmic(const Chart& chart, bool vertical);

/// The marks that no other beats: both coordinates are least. In order of x.
std::vector<Mark> front_of(std::vector<Mark> marks);

/// The chart for gnuplot.
Figure figure_of(const Chart& chart);
std::vector<Figure> figures_of(const std::vector<Chart>& charts);

} // namespace stagecraft
