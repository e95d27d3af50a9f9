// Pictures of results as SVG and PDF, drawn by gnuplot in one style.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stagecraft {

/// One series of a figure. A figure draws its series one after the other.
struct Series {
  std::string title; ///< shown in the key; "" leaves it out
  std::string style; ///< gnuplot's words: "using 1:2 with points"
  std::string rows;  ///< lines of columns, made by figure_row()
};

/// Widths of figures in pixels of 1/96 inch: a column of a paper (85 mm), and both columns of a page (178 mm).
inline constexpr int kColumnWidth = 321, kPageWidth = 672;

/// One picture, and its files: NAME.svg and NAME.pdf, and beside them NAME.gp, which draws them, NAME.dat, and NAME.csv
/// for other programs, where it has one.
struct Figure {
  std::string name;
  std::string title;
  std::string x, y;     ///< axes, with units
  std::string commands; ///< gnuplot commands, run after those of the common style
  std::vector<Series> series;
  int width = kColumnWidth, height = 210; ///< pixels of 1/96 inch
  std::string csv = {};                   ///< what it shows, with names in place of positions
};

/// A line of data; numbers with six digits.
std::string figure_row(const std::vector<double>& columns);
/// A text as a quoted gnuplot string, which shows it as it stands, controls in words, and runs nothing of it.
std::string gnuplot_text(const std::string& text);
/// A text as part of the name of a file: letters, digits, dots and dashes.
std::string file_name_of(const std::string& text);

/// The colour of series `number`, counted from 1, in a palette that colour-blind people can tell apart (Okabe and Ito
/// 2008).
std::string figure_color(std::size_t number);

/// The script that draws a figure.
std::string to_gnuplot(const Figure& figure);

/// Writes the files into `folder`, which it makes where there is none. Returns "", or in one line why there is no
/// picture: nothing to draw, or gnuplot is not installed or fails.
std::string draw(const Figure& figure, const std::filesystem::path& folder);

} // namespace stagecraft
