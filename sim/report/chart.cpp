// SPDX-License-Identifier: Apache-2.0
#include "sim/report/chart.hpp"

#include <algorithm>

#include "sim/base/units.hpp"

namespace stagecraft {
namespace {

constexpr double kHalf = 0.4; // of a bar's height; names are 1 apart

/// Of values that marks have.
struct Extent {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  bool whole = true; ///< all are whole numbers
};

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

std::string number(double value) {
  constexpr int kDigits = 6;
  return to_digits(value, kDigits);
}

std::string range_of(const char* axis, double low, double high) {
  return std::string("set ") + axis + "range [" + number(low) + ":" + number(high) + "]\n";
}

// Of many names below the axis only some, or they lie on each other.
std::string names_of(const Axis& axis, const char* which) {
  constexpr std::size_t kMostBelow = 30;
  const std::size_t step = which[0] == 'x' ? (axis.names.size() + kMostBelow - 1) / kMostBelow : 1;
  std::string tics;
  for (std::size_t place = 0; place < axis.names.size(); place += step) {
    tics += (tics.empty() ? "" : ", ") + gnuplot_text(axis.names[place]) + " " + std::to_string(place);
  }
  const bool slanted = which[0] == 'x' && axis.names.size() > 6;
  return std::string("set ") + which + "tics (" + tics + ")" + (slanted ? " rotate by -35" : "") + "\n";
}

// From a little below the least to a little above the largest, with 1, 2 and 5 of every power of ten, or fewer.
std::string logarithmic_commands(const Extent& extent, const char* which) {
  constexpr double kRoom = 1.1, kManyDecades = 1e3;
  const bool many = extent.high > kManyDecades * extent.low;
  std::string tics;
  const int last = static_cast<int>(std::floor(std::log10(kRoom * extent.high)));
  for (int power = static_cast<int>(std::floor(std::log10(extent.low))); power <= last; ++power) {
    for (const double step : {1.0, 2.0, 5.0}) {
      if (step == 1 || !many) {
        tics += (tics.empty() ? "" : ", ") + number(step * std::pow(10, power));
      }
    }
  }
  return std::string("set logscale ") + which + "\nset format " + which + " '%g'\n" +
         range_of(which, extent.low / kRoom, extent.high * kRoom) + "set " + which + "tics (" + tics + ")\n";
}

std::string axis_commands(const Chart& chart, bool vertical, bool cells) {
  const Axis& axis = vertical ? chart.y : chart.x;
  const char* which = vertical ? "y" : "x";
  const bool logarithmic = is_logarithmic(chart, vertical);
  if (!axis.names.empty()) {
    const double last = static_cast<double>(axis.names.size()) - 0.5;
    const bool down = which[0] == 'y';
    return names_of(axis, which) + (down ? range_of(which, last, -0.5) : cells ? range_of(which, -0.5, last) : "");
  }
  if (logarithmic) {
    return logarithmic_commands(extent_of(chart, [&](const Mark& mark) { return vertical ? mark.y : mark.x; }), which);
  }
  return std::string("set format ") + which + " '%g'\n" +
         (axis.from_zero ? std::string("set ") + which + "range [0:*]\n" : "");
}

std::vector<double> columns_of(const Mark& mark, Look look) {
  switch (look) {
  case Look::bars:
    return {mark.x, mark.y, 0, mark.x, mark.y - kHalf, mark.y + kHalf};
  case Look::cells:
    return {mark.x, mark.y, mark.x - 0.5, mark.x + 0.5, mark.y - 0.5, mark.y + 0.5, mark.value};
  default:
    return {mark.x, mark.y};
  }
}

std::string style_of(Look look) {
  switch (look) {
  case Look::points:
    return "using 1:2 with points pt 7 ps 0.6";
  case Look::line:
    return "using 1:2 with linespoints ps 0.6";
  case Look::steps:
    return "using 1:2 with steps";
  case Look::front:
    return "using 1:2 with steps lc rgb '#222222'";
  case Look::bars:
    return "using 1:2:3:4:5:6 with boxxyerror fs solid 0.7";
  case Look::cells:
    return "using 1:2:3:4:5:6:7 with boxxyerror lc palette fs solid";
  case Look::guide:
    return "using 1:2 with lines lc rgb '#777777' dt 3";
  case Look::faint:
    return "using 1:2 with points pt 7 ps 0.4 lc rgb '#cccccc'";
  }
  return "";
}

std::string rows_of(const ChartSeries& series) {
  std::string rows;
  for (const Mark& mark : series.marks) {
    rows += figure_row(columns_of(mark, series.look));
  }
  return rows;
}

// The intervals of bars, and the numbers of few enough cells.
void add_details(const ChartSeries& series, Figure& figure) {
  constexpr std::size_t kMostNumbers = 150;
  std::string intervals, numbers;
  for (const Mark& mark : series.marks) {
    if (series.look == Look::bars && std::isfinite(mark.low)) {
      intervals += figure_row({mark.x, mark.y, mark.low, mark.high});
    }
    if (series.look == Look::cells && series.marks.size() <= kMostNumbers) {
      numbers += figure_row({mark.x, mark.y, mark.value});
    }
  }
  if (!intervals.empty()) {
    figure.series.push_back({"", "using 1:2:3:4 with xerrorbars lc rgb '#222222' pt 0 lw 1", intervals});
  }
  if (!numbers.empty()) {
    figure.series.push_back(
        {"", "using 1:2:(sprintf('%.4g', $3)) with labels font ',9' textcolor rgb '#000000'", numbers});
  }
}

// In lines that a figure holds.
std::vector<std::string> lines_of(const std::string& text) {
  constexpr std::size_t kWidth = 80; // letters
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    if (const std::size_t blank = text.rfind(' ', at + kWidth); end - at > kWidth && blank != text.npos && blank > at) {
      end = blank;
    }
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string title_with_note(const Chart& chart) {
  std::string title = gnuplot_text(chart.title);
  for (const std::string& line : lines_of(chart.note)) {
    title += ".\"\\n\"." + gnuplot_text(line);
  }
  return "set title " + title + "\n";
}

// Dark to light, even in lightness, readable without colour (Smith and van der Walt's viridis, lighter half for text).
constexpr const char* kPalette = " defined (0 '#3b528b', 0.33 '#21918c', 0.66 '#5ec962', 1 '#fde725')\n";

} // namespace

bool is_logarithmic(const Chart& chart, bool vertical) {
  if (!(vertical ? chart.y : chart.x).logarithmic) {
    return false;
  }
  constexpr double kFar = 12; // times
  const Extent extent = extent_of(chart, [&](const Mark& mark) { return vertical ? mark.y : mark.x; });
  return extent.low > 0 && (extent.whole || extent.high > kFar * extent.low);
}

std::vector<Mark> front_of(std::vector<Mark> marks) {
  std::stable_sort(marks.begin(), marks.end(),
                   [](const Mark& a, const Mark& b) { return std::pair(a.x, a.y) < std::pair(b.x, b.y); });
  std::vector<Mark> front;
  for (Mark& mark : marks) {
    if (front.empty() || mark.y < front.back().y) {
      front.push_back(std::move(mark));
    }
  }
  return front;
}

Figure figure_of(const Chart& chart) {
  const bool cells = std::any_of(chart.series.begin(), chart.series.end(),
                                 [](const ChartSeries& one) { return one.look == Look::cells; });
  const bool bars = std::any_of(chart.series.begin(), chart.series.end(),
                                [](const ChartSeries& one) { return one.look == Look::bars; });
  constexpr int kPerName = 22, kMargins = 130, kLeastHeight = 260;
  Figure figure{.name = chart.name,
                .title = chart.title,
                .x = chart.x.title,
                .y = chart.y.title,
                .commands = (chart.note.empty() ? "" : title_with_note(chart)) + axis_commands(chart, false, cells) +
                            axis_commands(chart, true, cells) +
                            "set key tmargin center horizontal reverse Left samplen 2 font ',10'\n",
                .series = {}};
  if (cells) {
    constexpr double kFar = 5; // times: colours by the logarithm
    const Extent extent = extent_of(chart, [](const Mark& mark) { return mark.value; });
    figure.commands += std::string(extent.low > 0 && extent.high > kFar * extent.low ? "set logscale cb\n" : "") +
                       "set palette" + (chart.least_is_best ? " negative" : "") + kPalette + "set cblabel " +
                       gnuplot_text(chart.value) + "\nunset grid\n";
  }
  if (bars || cells) {
    figure.height = std::max(kLeastHeight, kMargins + kPerName * static_cast<int>(chart.y.names.size()));
  }
  for (const ChartSeries& series : chart.series) {
    figure.series.push_back({series.name, style_of(series.look), rows_of(series)});
  }
  for (const ChartSeries& series : chart.series) {
    add_details(series, figure);
  }
  return figure;
}

std::vector<Figure> figures_of(const std::vector<Chart>& charts) {
  std::vector<Figure> figures;
  for (const Chart& chart : charts) {
    figures.push_back(figure_of(chart));
  }
  return figures;
}

} // namespace stagecraft
