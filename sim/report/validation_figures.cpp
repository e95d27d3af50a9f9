// SPDX-License-Identifier: Apache-2.0
#include "sim/report/validation_figures.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace stagecraft {
namespace {

using Rows = std::vector<ValidationRow>;
using Sets = std::map<std::string, Rows>;

Sets sets_of(const Rows& rows, const std::string& metric) {
  Sets sets;
  for (const ValidationRow& row : rows) {
    if (row.metric == metric) {
      sets[!row.contest.empty() ? row.contest : row.group.empty() ? "all" : row.group].push_back(row);
    }
  }
  return sets;
}

// "iteration_seconds" as an axis: "iteration [s]".
std::string axis(const std::string& metric) {
  static const std::map<std::string, std::string> kUnits = {{"_seconds", " [s]"}, {"_joules", " [J]"}};
  for (const auto& [ending, unit] : kUnits) {
    if (metric.ends_with(ending)) {
      return metric.substr(0, metric.size() - ending.size()) + unit;
    }
  }
  return metric;
}

std::string file_name(const std::string& front, const std::string& name) { return file_name_of(front + "-" + name); }

// Marks of a logarithmic axis: 1, 2 and 5 of every power of ten.
std::string marks(double low, double high) {
  std::string text;
  for (double power = std::pow(10, std::floor(std::log10(low))); power < high; power *= 10) {
    for (const double step : {1.0, 2.0, 5.0}) {
      const std::string row = figure_row({step * power});
      text += (text.empty() ? "" : ", ") + row.substr(0, row.size() - 1);
    }
  }
  return "(" + text + ")";
}

// The diagonal, and 5 % to both sides of it.
// The diagonal, and 5 % to both sides of it.
Figure predicted_figure(const std::string& metric, const Sets& sets) {
  double low = INFINITY, high = 0;
  Figure figure{.name = file_name("predicted", metric),
                .title = "Predicted against measured",
                .x = "measured " + axis(metric),
                .y = "predicted " + axis(metric),
                .commands = "set logscale xy\nset clip two\nset key top left reverse Left samplen 1 font ',10'\n"
                            "set format xy '%g'\n",
                .series = {},
                .height = 520};
  for (const auto& [name, rows] : sets) {
    Series series{name, "using 1:2 with points ps 0.7", ""};
    for (const ValidationRow& row : rows) {
      series.rows += figure_row({row.measured, row.predicted});
      low = std::min({low, row.measured, row.predicted});
      high = std::max({high, row.measured, row.predicted});
    }
    figure.series.push_back(series);
  }
  constexpr double kRoom = 1.15, kNear = 0.05;
  low /= kRoom;
  high *= kRoom;
  const auto line = [&](const char* title, const char* look, double factor) {
    figure.series.push_back({title, std::string("using 1:2 with lines lc rgb '#777777' ") + look,
                             figure_row({low, factor * low}) + figure_row({high, factor * high})});
  };
  line("as measured", "lw 1.2", 1);
  line("5 % off", "dt 3", 1 + kNear);
  line("", "dt 3", 1 - kNear);
  for (const char* axis : {"x", "y"}) {
    const std::string name(axis);
    figure.commands += "set " + name + "range [" + std::to_string(low) + ":" + std::to_string(high) + "]\nset " + name +
                       "tics " + marks(low, high) + "\n";
  }
  return figure;
}

// What share of the rows is no further off than that.
std::string share_rows(const Rows& rows) {
  constexpr double kLeast = 0.01; // %, as the axis is logarithmic
  std::vector<double> errors;
  for (const ValidationRow& row : rows) {
    errors.push_back(std::max(kLeast, 100 * std::abs(row.error())));
  }
  std::sort(errors.begin(), errors.end());
  std::string text;
  for (std::size_t at = 0; at < errors.size(); ++at) {
    text += figure_row({errors[at], 100 * static_cast<double>(at + 1) / static_cast<double>(errors.size())});
  }
  return text;
}

Figure errors_figure(const std::string& metric, const Sets& sets, const Validation& validation) {
  Figure figure{.name = file_name("errors", metric),
                .title = "Errors, smallest first",
                .x = "absolute error of " + axis(metric).substr(0, axis(metric).find(" [")) + " [%]",
                .y = "rows with at most this error [%]",
                .commands = "set logscale x\nset format x '%g'\nset yrange [0:100]\n"
                            "set key outside right reverse Left samplen 2 font ',10'\n",
                .series = {},
                .width = 960};
  Rows all;
  for (const auto& [name, rows] : sets) {
    all.insert(all.end(), rows.begin(), rows.end());
    if (sets.size() > 1) {
      figure.series.push_back({name, "using 1:2 with steps", share_rows(rows)});
    }
  }
  const std::string predicted = share_rows(all);
  figure.series.push_back({"all", "using 1:2 with steps lc rgb 'black' lw 3", predicted});
  for (const auto& [name, rows] : validation.baselines) {
    const Sets same = sets_of(rows, metric);
    Rows of_metric;
    for (const auto& [set, members] : same) {
      of_metric.insert(of_metric.end(), members.begin(), members.end());
    }
    if (!of_metric.empty() && share_rows(of_metric) != predicted) { // it says something else
      figure.series.push_back({"compare: " + name, "using 1:2 with steps dt 2", share_rows(of_metric)});
    }
  }
  return figure;
}

// From the fastest to the slowest.
Figure ranking_figure(const std::string& contest, Rows rows, const std::string& metric) {
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.measured < b.measured; });
  Series measured{"measured", "using 1:2 with linespoints pt 7 ps 0.6", ""};
  Series predicted{"predicted", "using 1:2 with points pt 6 ps 1 lw 1.5", ""};
  for (std::size_t place = 0; place < rows.size(); ++place) {
    measured.rows += figure_row({static_cast<double>(place + 1), rows[place].measured});
    predicted.rows += figure_row({static_cast<double>(place + 1), rows[place].predicted});
  }
  return {.name = file_name("ranking", contest),
          .title = contest,
          .x = "plans from the fastest to the slowest, as measured",
          .y = axis(metric),
          .commands = "set key top left reverse Left\nset yrange [0:*]\nset xrange [0:" +
                      std::to_string(rows.size() + 1) + "]\n",
          .series = {measured, predicted}};
}

} // namespace

std::vector<Figure> figures_of(const Validation& validation) {
  constexpr std::size_t kRanked = 3; // rows, at least
  std::vector<std::string> metrics;
  for (const ValidationRow& row : validation.rows) {
    if (std::find(metrics.begin(), metrics.end(), row.metric) == metrics.end()) {
      metrics.push_back(row.metric);
    }
  }
  std::vector<Figure> figures;
  for (const std::string& metric : metrics) {
    const Sets sets = sets_of(validation.rows, metric);
    figures.push_back(predicted_figure(metric, sets));
    figures.push_back(errors_figure(metric, sets, validation));
    for (const auto& [name, rows] : sets) {
      if (rows.size() >= kRanked && !rows.front().contest.empty()) {
        figures.push_back(ranking_figure(name, rows, metric));
      }
    }
  }
  return figures;
}

} // namespace stagecraft
