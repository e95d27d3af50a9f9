// SPDX-License-Identifier: Apache-2.0
#include "sim/report/number_axis.hpp"

#include <set>

#include "sim/base/units.hpp"
#include "sim/report/figure_frame.hpp"

namespace stagecraft {
namespace {

constexpr double kRoom = 1.1;    // factor by which a logarithmic axis goes beyond its least and largest values
constexpr double kMargin = 0.05; // part of its extent by which a linear axis does
constexpr int kMost = 6;         // numbers below a figure
constexpr int kMostBesideNames = 3;

std::string tics_command(const char* axis, const std::vector<double>& tics) {
  std::string list;
  for (const double tic : tics) {
    list += (list.empty() ? "" : ", ") + figure_number(tic);
  }
  return std::string("set ") + axis + "tics (" + list + ")\n";
}

bool has_look(const Chart& chart, Look look) {
  return std::any_of(chart.series.begin(), chart.series.end(),
                     [&](const ChartSeries& one) { return one.look == look; });
}

// Multiples of one distance within the extent; its value where that is one alone.
std::vector<double> equal_tics(const Extent& extent) {
  if (!(extent.high > extent.low)) {
    return {extent.low};
  }
  const double distance = tic_distance(extent.low, extent.high, kMost);
  std::vector<double> tics;
  for (double multiple = std::ceil(extent.low / distance); multiple * distance <= extent.high; ++multiple) {
    tics.push_back(multiple * distance);
  }
  return tics;
}

// Whether the letters of two numbers below a plot stand apart whose places are so large a part of its width apart.
bool stand_apart(double one, double other, double part) {
  constexpr double kPlot = 230, kLetter = 6, kGap = 8; // pixels
  const auto letters = static_cast<double>(figure_number(one).size() + figure_number(other).size()) / 2;
  return part * kPlot >= letters * kLetter + kGap;
}

// Powers of ten, and twice and five times each where there are few of them and, `below` a plot, letters stand apart.
std::vector<double> logarithmic_tics(const Extent& extent, bool below) {
  constexpr double kManyDecades = 1e3;
  const double parts = std::log(kRoom * extent.high) - std::log(extent.low / kRoom);
  const double longest = std::pow(10, std::floor(std::log10(extent.high)));
  const bool crowded = below && !stand_apart(longest, 2 * longest, std::log(2) / parts);
  const bool many = crowded || extent.high > kManyDecades * extent.low;
  std::vector<double> tics;
  std::size_t inside = 0;
  const int last = static_cast<int>(std::floor(std::log10(kRoom * extent.high)));
  for (int power = static_cast<int>(std::floor(std::log10(extent.low))); power <= last; ++power) {
    for (const double step : {1.0, 2.0, 5.0}) {
      if (step == 1 || !many) {
        tics.push_back(step * std::pow(10, power));
        inside += extent.low <= tics.back() && tics.back() <= extent.high ? 1 : 0;
      }
    }
  }
  return inside < 2 ? equal_tics(extent) : tics;
}

// The values of a curve that stands on few, for numbers below it: the first, the last, and those between that leave
// room for their letters. None where the chart is no curve, or has many.
std::vector<double> own_tics(const Chart& chart, bool logarithmic) {
  constexpr std::size_t kFew = 12;
  std::set<double> values;
  for (const ChartSeries& series : chart.series) {
    for (const Mark& mark : series.marks) {
      if (std::isfinite(mark.x)) {
        values.insert(mark.x);
      }
    }
  }
  if (!has_look(chart, Look::line) || values.size() < 2 || values.size() > kFew) {
    return {};
  }
  const auto on_scale = [&](double value) { return logarithmic ? std::log(value) : value; };
  const double first = on_scale(*values.begin()), last = on_scale(*values.rbegin());
  const auto apart = [&](double a, double b) {
    return stand_apart(a, b, (on_scale(b) - on_scale(a)) / (last - first));
  };
  std::vector<double> tics = {*values.begin()};
  for (const double value : values) {
    if (apart(tics.back(), value) && apart(value, *values.rbegin())) {
      tics.push_back(value);
    }
  }
  tics.push_back(*values.rbegin());
  return tics;
}

// Numbers below the plot, few enough that they stand apart beside long names.
std::string number_tics(const Chart& chart) {
  if (const std::vector<double> own = own_tics(chart, false); !own.empty()) {
    return tics_command("x", own);
  }
  Extent extent = extent_of(chart, [](const Mark& mark) { return std::isfinite(mark.high) ? mark.high : mark.x; });
  const Extent least = extent_of(chart, [](const Mark& mark) { return mark.x; });
  extent.low = chart.x.from_zero ? 0 : least.low;
  return extent.high > extent.low ? "set xtics " +
                                        figure_number(tic_distance(extent.low, extent.high,
                                                                   chart.y.names.empty() ? kMost : kMostBesideNames)) +
                                        "\n"
                                  : "";
}

// A range that leaves room around points, and none below zero where they are above it; bars and cells end where their
// plot does.
std::string linear_range(const Chart& chart, const ChartAxis& axis, const Extent& extent, const char* which) {
  const bool points = !has_look(chart, Look::bars) && !has_look(chart, Look::cells) && extent.low <= extent.high;
  if (!points) {
    return axis.from_zero ? std::string("set ") + which + "range [0:*]\n" : "";
  }
  const double low = axis.from_zero ? std::min(0.0, extent.low) : extent.low, high = extent.high;
  const double span = high > low ? high - low : std::abs(high) > 0 ? std::abs(high) : 1, margin = kMargin * span;
  const bool below_zero = low < 0 || (low == 0 && !axis.from_zero);
  return range_command(which, below_zero ? low - margin : std::max(0.0, low - margin), high + margin);
}

} // namespace

std::string figure_number(double value) {
  constexpr int kDigits = 6;
  return to_digits(value, kDigits);
}

std::string range_command(const char* axis, double low, double high) {
  return std::string("set ") + axis + "range [" + figure_number(low) + ":" + figure_number(high) + "]\n";
}

std::string logarithmic_commands(const Extent& extent, const char* axis, const std::vector<double>& tics) {
  return std::string("set logscale ") + axis + "\nset format " + axis + " '%g'\n" +
         tics_command(axis, tics.empty() ? logarithmic_tics(extent, axis == std::string_view("x")) : tics);
}

std::string number_axis_commands(const Chart& chart, bool vertical) {
  const ChartAxis& axis = vertical ? chart.y : chart.x;
  const char* which = vertical ? "y" : "x";
  const Extent extent = extent_of(chart, [&](const Mark& mark) { return vertical ? mark.y : mark.x; });
  if (is_logarithmic(chart, vertical)) {
    const std::vector<double> own = vertical ? std::vector<double>{} : own_tics(chart, true);
    return logarithmic_commands(extent, which, own) + range_command(which, extent.low / kRoom, extent.high * kRoom);
  }
  return std::string("set format ") + which + " '%g'\n" + (vertical ? "" : number_tics(chart)) +
         linear_range(chart, axis, extent, which);
}

} // namespace stagecraft
