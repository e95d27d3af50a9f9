// Where title, key, plot and names of axes stand in a figure as wide as a column of a paper.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace stagecraft {

/// What stands around a plot, from top to bottom.
struct FigureFrame {
  std::vector<std::string> title; ///< lines
  std::vector<std::string> key;   ///< names of series
  bool above = false;             ///< a line of text stands directly above the plot
  int plot = 0;                   ///< height of the plot, in pixels
  int below = 0;                  ///< pixels below it, beyond tics and title of the axis
};

/// The height of the whole figure in pixels.
int height_of(const FigureFrame& frame);

/// gnuplot's commands that put title, key and plot there. gnuplot alone centres the title on a plot that long names
/// push aside, and takes the height of the key from the plot.
std::string commands_of(const FigureFrame& frame);

/// Breaks a text into lines that a figure holds.
std::vector<std::string> lines_of(const std::string& text);

/// Distance of numbers on a linear axis from `low` to `high`: 1, 2 or 5 times a power of ten, at most `most` of them.
double tic_distance(double low, double high, int most);

} // namespace stagecraft
