// SPDX-License-Identifier: Apache-2.0
#include "sim/report/chart.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "sim/base/format/csv.hpp"
#include "sim/base/units.hpp"
#include "sim/report/figure_frame.hpp"
#include "sim/report/number_axis.hpp"
#include "sim/report/terminal.hpp"

namespace stagecraft {
namespace {

constexpr double kHalf = 0.4; // half the height of a bar; names are 1 apart

// The number of bytes that the first `letters` letters take.
std::size_t bytes_of(const std::string& text, std::size_t letters) {
  std::size_t at = 0, seen = 0;
  for (; at < text.size(); ++at) {
    seen += display_width(std::string_view(text).substr(at, 1)); // 0 for what continues a letter
    if (seen > letters) {
      break;
    }
  }
  return at;
}

// Shortens a name in the middle, since names differ at their ends.
std::string cut(const std::string& name, std::size_t most) {
  const std::size_t letters = display_width(name), head = (most - 1) / 2, tail = most - 1 - head;
  return letters <= most ? name
                         : name.substr(0, bytes_of(name, head)) + "…" + name.substr(bytes_of(name, letters - tail));
}

// Names shortened to fit an axis, with numbers in front where two would become equal.
std::vector<std::string> fitted(const std::vector<std::string>& names, std::size_t most) {
  std::vector<std::string> fit;
  for (const std::string& name : names) {
    fit.push_back(cut(name, most));
  }
  if (std::set(fit.begin(), fit.end()).size() < std::set(names.begin(), names.end()).size()) {
    for (std::size_t place = 0; place < names.size(); ++place) {
      fit[place] = std::to_string(place + 1) + ": " + cut(names[place], most - 4);
    }
  }
  return fit;
}

std::size_t longest_of(const std::vector<std::string>& names) {
  std::size_t longest = 0;
  for (const std::string& name : names) {
    longest = std::max(longest, display_width(name));
  }
  return longest;
}

// A figure is a column of a paper wide, some 60 letters. Names below the axis are slanted where level ones would
// overlap.
constexpr std::size_t kMostLevel = 6, kLevelLetters = 36, kMostSlanted = 20, kMostBeside = 30;

bool is_slanted(const ChartAxis& axis) {
  return axis.names.size() > kMostLevel || axis.names.size() * longest_of(axis.names) > kLevelLetters;
}

// Pixels that slanted names take below a figure, beyond those of level names.
int slanted_height(const ChartAxis& axis) {
  constexpr std::size_t kPixels = 4; // height of a letter when slanted
  return is_slanted(axis) ? static_cast<int>(kPixels * std::min(kMostSlanted, longest_of(axis.names))) : 0;
}

// The names of an axis; below a figure only every n-th if there are many, so that they do not overlap.
std::string names_of(const ChartAxis& axis, const char* which) {
  constexpr std::size_t kMostBelow = 18;
  const bool below = which[0] == 'x';
  const std::vector<std::string> names = fitted(axis.names, below ? kMostSlanted : kMostBeside);
  const std::size_t step = below ? (names.size() + kMostBelow - 1) / kMostBelow : 1;
  std::string tics;
  for (std::size_t place = 0; place < names.size(); place += step) {
    tics += (tics.empty() ? "" : ", ") + gnuplot_text(names[place]) + " " + std::to_string(place);
  }
  return std::string("set ") + which + "tics (" + tics + ")" + (below && is_slanted(axis) ? " rotate by -35" : "") +
         "\n";
}

std::string axis_commands(const Chart& chart, bool vertical) {
  const ChartAxis& axis = vertical ? chart.y : chart.x;
  const char* which = vertical ? "y" : "x";
  if (axis.names.empty()) {
    return number_axis_commands(chart, vertical);
  }
  const double last = static_cast<double>(axis.names.size()) - 0.5;
  return names_of(axis, which) + (vertical ? range_command(which, last, -0.5) : range_command(which, -0.5, last));
}

std::vector<double> columns_of(const Mark& mark, Look look) {
  switch (look) {
  case Look::bars:
    return {mark.x, mark.y, mark.begin, mark.x, mark.y - kHalf, mark.y + kHalf};
  case Look::cells:
    return {mark.x, mark.y, mark.x - 0.5, mark.x + 0.5, mark.y - 0.5, mark.y + 0.5, mark.value};
  default:
    return {mark.x, mark.y};
  }
}

// `number`: the place of the series. Where colours are used up, the next turn of them has another symbol, as on a page.
std::string style_of(const Chart& chart, Look look, std::size_t number) {
  constexpr std::size_t kColors = 8;
  constexpr std::array kSymbols = {7, 5, 9, 13}; // a circle, a square, a triangle, a diamond, filled
  switch (look) {
  case Look::points:
    return "using 1:2 with points pt " + std::to_string(kSymbols[number / kColors % kSymbols.size()]) + " ps 0.6";
  case Look::line: // no line between names
    return chart.x.names.empty() ? "using 1:2 with linespoints ps 0.6" : "using 1:2 with points ps 0.6";
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

// How colours follow from the values of cells: linearly, or by logarithm where the values are far apart.
struct ColorScale {
  Extent extent;
  bool logarithmic;
  bool least_is_best;

  explicit ColorScale(const Chart& chart)
      : extent(extent_of(chart, [](const Mark& mark) { return mark.value; })), least_is_best(chart.least_is_best) {
    constexpr double kFar = 5; // ratio of largest to least
    logarithmic = extent.low > 0 && extent.high > kFar * extent.low;
  }

  bool is_dark(double value) const {
    constexpr double kDark = 0.25; // part of the palette on which white is easier to read than black
    const auto on_scale = [&](double number) { return logarithmic ? std::log(number) : number; };
    const double low = on_scale(extent.low), high = on_scale(extent.high);
    const double part = high > low ? (on_scale(value) - low) / (high - low) : 0.5;
    return (least_is_best ? 1 - part : part) < kDark;
  }
};

// How gnuplot draws extra points for a series: circles around the points of a front, and the point of a step curve with
// one mark, whose line would be invisible.
std::string points_of(const ChartSeries& series, std::size_t number) {
  if (series.look == Look::front) {
    return "using 1:2 with points pt 6 ps 1.1 lc rgb '#222222'";
  }
  return series.look == Look::steps && series.marks.size() == 1
             ? "using 1:2 with points pt 7 ps 0.6 lc " + std::to_string(number + 1)
             : "";
}

// Adds the intervals of bars, and the numbers in cells where there are not too many.
void add_details(const ChartSeries& series, const ColorScale& scale, std::size_t across, Figure& figure) {
  constexpr std::size_t kMostNumbers = 150, kMostAcross = 8;
  std::string intervals, numbers;
  for (const Mark& mark : series.marks) {
    if (series.look == Look::bars && std::isfinite(mark.low)) {
      intervals += figure_row({mark.x, mark.y, mark.low, mark.high});
    }
    if (series.look == Look::cells && series.marks.size() <= kMostNumbers && across <= kMostAcross) {
      numbers += figure_row({mark.x, mark.y, mark.value, scale.is_dark(mark.value) ? 1.0 : 0.0});
    }
  }
  if (!intervals.empty()) {
    figure.series.push_back({"", "using 1:2:3:4 with xerrorbars lc rgb '#222222' pt 0 lw 1", intervals});
  }
  if (!numbers.empty()) {
    figure.series.push_back({"",
                             "using 1:2:(sprintf('%.3g', $3)):($4 * 0xffffff) with labels font ',9' textcolor rgb "
                             "variable", // white on dark cells
                             numbers});
  }
}

// A column of the CSV of a chart, with a cell for each mark, as text.
struct CsvColumn {
  std::string title;
  std::function<std::string(const ChartSeries& series, const Mark& mark)> cell;
};

// The title of an axis as that of a column: one that is a unit alone gets a word in front.
std::string csv_title(const ChartAxis& axis, const char* otherwise) {
  const std::string title = axis.title.empty() ? axis.names.empty() ? otherwise : "name" : axis.title;
  return title.starts_with('[') ? "value " + title : title;
}

// The name of a place on an axis that has names, or its number.
std::string csv_place(const ChartAxis& axis, double at) {
  if (axis.names.empty()) {
    return csv_cell(at);
  }
  const double place = std::max(0.0, at);
  return place < static_cast<double>(axis.names.size()) ? csv_cell(axis.names[static_cast<std::size_t>(place)]) : "";
}

std::vector<CsvColumn> csv_columns(const Chart& chart) {
  const auto figure = [](double value) { return std::isfinite(value) ? csv_cell(value) : std::string(); };
  const auto begins = [](const ChartSeries& series) { // bars of which some do not begin at 0
    return series.look == Look::bars &&
           std::any_of(series.marks.begin(), series.marks.end(), [](const Mark& mark) { return mark.begin != 0; });
  };
  const auto says_more = [&](const Mark& mark) { return csv_cell(mark.text) != csv_place(chart.y, mark.y); };
  return {
      {"series", [](const ChartSeries& series, const Mark&) { return csv_cell(series.name); }},
      {csv_title(chart.x, "x"), [&](const ChartSeries&, const Mark& mark) { return csv_place(chart.x, mark.x); }},
      {csv_title(chart.y, "y"), [&](const ChartSeries&, const Mark& mark) { return csv_place(chart.y, mark.y); }},
      {"begin", [=](const ChartSeries& series, const Mark& mark) { return begins(series) ? figure(mark.begin) : ""; }},
      {"low", [=](const ChartSeries&, const Mark& mark) { return figure(mark.low); }},
      {"high", [=](const ChartSeries&, const Mark& mark) { return figure(mark.high); }},
      {chart.value.empty() ? "value" : chart.value,
       [=](const ChartSeries&, const Mark& mark) { return figure(mark.value); }},
      {chart.besides, [](const ChartSeries&, const Mark& mark) { return csv_cell(mark.besides); }},
      {"what", [=](const ChartSeries&, const Mark& mark) { return says_more(mark) ? csv_cell(mark.text) : ""; }},
  };
}

// The marks as CSV: a line for each, with the names of axes that have names. Columns without any content are left out.
std::string csv_of(const Chart& chart) {
  std::string header;
  std::vector<CsvColumn> columns;
  for (CsvColumn& column : csv_columns(chart)) {
    const bool told = std::any_of(chart.series.begin(), chart.series.end(), [&](const ChartSeries& series) {
      return std::any_of(series.marks.begin(), series.marks.end(),
                         [&](const Mark& mark) { return !column.cell(series, mark).empty(); });
    });
    if (told) {
      header += (columns.empty() ? "" : ",") + csv_cell(column.title);
      columns.push_back(std::move(column));
    }
  }
  std::string csv = header + "\n";
  for (const ChartSeries& series : chart.series) {
    for (const Mark& mark : series.marks) {
      for (std::size_t at = 0; at < columns.size(); ++at) {
        csv += (at == 0 ? "" : ",") + columns[at].cell(series, mark);
      }
      csv += "\n";
    }
  }
  return csv;
}

// A line across the figure, with its text above it, on the side that has room; where names leave too little, the text
// ends with the figure.
std::string commands_of(const Chart& chart, const ChartLine& line, double highest) {
  constexpr double kLetter = 5.2, kName = 6, kEdges = 30; // pixels
  const bool right = 2 * line.x > highest;
  const double plot =
      kColumnWidth - kName * static_cast<double>(std::min(kMostBeside, longest_of(chart.y.names))) - kEdges;
  const bool fits = right || kLetter * static_cast<double>(display_width(line.text)) < plot * (1 - line.x / highest);
  const std::string at = fits ? figure_number(line.x) : "screen 0.98";
  return "set arrow from " + figure_number(line.x) + ", graph 0 to " + figure_number(line.x) +
         ", graph 1 nohead front dt 3 lc rgb '#222222'\nset label " + gnuplot_text(line.text) + " at " + at +
         ", graph 1 " + (right || !fits ? "right" : "left") + " offset 0,0.7 front font ',9'\n";
}

// Dark to light, even in lightness, readable without colour (Smith and van der Walt's viridis, lighter half for text).
constexpr const char* kPalette = " defined (0 '#3b528b', 0.33 '#21918c', 0.66 '#5ec962', 1 '#fde725')\n";

std::string color_commands(const Chart& chart, const ColorScale& scale) {
  const Extent& extent = scale.extent;
  return (scale.logarithmic ? logarithmic_commands(extent, "cb") : "") +
         (extent.low < extent.high ? range_command("cb", extent.low, extent.high) : "") + "set palette" +
         (chart.least_is_best ? " negative" : "") + kPalette + "set cblabel " + gnuplot_text(chart.value) +
         "\nunset grid\n";
}

} // namespace

bool is_logarithmic(const Chart& chart, bool vertical) {
  if (!(vertical ? chart.y : chart.x).logarithmic) {
    return false;
  }
  constexpr double kFar = 12; // ratio of largest to least
  const Extent extent = extent_of(chart, [&](const Mark& mark) { return vertical ? mark.y : mark.x; });
  const bool has_marks = extent.high >= extent.low;
  return has_marks && extent.low > 0 && (extent.whole || extent.high > kFar * extent.low);
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
  FigureFrame frame{.title = lines_of(chart.title), .above = !chart.lines.empty(), .below = slanted_height(chart.x)};
  for (const std::string& line : lines_of(chart.note)) {
    frame.title.push_back(line);
  }
  for (const ChartSeries& series : chart.series) {
    if (!series.name.empty()) {
      frame.key.push_back(cut(series.name, kMostBeside));
    }
  }
  constexpr int kPerName = 14, kPlot = 140, kLeastRows = 2, kLeastCells = 84; // a scale of colours has numbers
  const int rows = kPerName * std::max(kLeastRows, static_cast<int>(chart.y.names.size()));
  frame.plot = cells ? std::max(kLeastCells, rows) : bars ? rows : kPlot;
  Figure figure{.name = chart.name,
                .title = chart.title,
                .x = chart.x.title,
                .y = chart.y.title,
                .commands = commands_of(frame) + axis_commands(chart, false) + axis_commands(chart, true),
                .series = {},
                .height = height_of(frame)};
  const ColorScale scale(chart);
  const Extent across = extent_of(chart, [](const Mark& mark) { return mark.x; });
  for (const ChartLine& line : chart.lines) {
    figure.commands += commands_of(chart, line, across.high);
  }
  if (cells) {
    figure.commands += color_commands(chart, scale);
  }
  figure.csv = csv_of(chart);
  for (const ChartSeries& series : chart.series) {
    figure.series.push_back(
        {cut(series.name, kMostBeside), style_of(chart, series.look, figure.series.size()), rows_of(series)});
  }
  for (std::size_t number = 0; number < chart.series.size(); ++number) {
    const ChartSeries& series = chart.series[number];
    if (const std::string points = points_of(series, number); !points.empty()) {
      figure.series.push_back({"", points, rows_of(series)});
    }
    add_details(series, scale, chart.x.names.size(), figure);
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
