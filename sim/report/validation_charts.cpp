// SPDX-License-Identifier: Apache-2.0
#include "sim/report/validation_charts.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

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

// The title of an axis: "iteration_seconds" becomes "iteration [s]".
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

// Points predicted against measured, with the diagonal and lines 5 % above and below it.
Chart predicted_chart(const std::string& metric, const Sets& sets) {
  double low = INFINITY, high = 0;
  Chart chart{.name = file_name("predicted", metric),
              .title = "Predicted against measured",
              .x = {.title = "measured " + axis(metric), .logarithmic = true},
              .y = {.title = "predicted " + axis(metric), .logarithmic = true}};
  for (const auto& [name, rows] : sets) {
    ChartSeries series{name, Look::points, {}};
    for (const ValidationRow& row : rows) {
      series.marks.push_back({.x = row.measured, .y = row.predicted, .text = row.case_name});
      low = std::min({low, row.measured, row.predicted});
      high = std::max({high, row.measured, row.predicted});
    }
    chart.series.push_back(std::move(series));
  }
  const auto line = [&](const char* title, double factor) {
    chart.series.push_back({title, Look::guide, {{.x = low, .y = factor * low}, {.x = high, .y = factor * high}}});
  };
  constexpr double kFar = 15; // ratio of largest to least; both axes must be of one kind
  chart.x.logarithmic = chart.y.logarithmic = high > kFar * low;
  constexpr double kNear = 0.05;
  line("as measured", 1);
  line("5 % off", 1 + kNear);
  line("", 1 - kNear);
  return chart;
}

// For each error, the share of rows whose error is not larger.
std::vector<Mark> shares_of(const Rows& rows) {
  constexpr double kLeast = 0.01; // %, since a logarithmic axis has no 0
  std::vector<std::pair<double, const ValidationRow*>> errors;
  for (const ValidationRow& row : rows) {
    errors.emplace_back(std::max(kLeast, 100 * std::abs(row.error())), &row);
  }
  std::stable_sort(errors.begin(), errors.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Mark> marks;
  for (const auto& [error, row] : errors) {
    const auto place = static_cast<double>(marks.size() + 1);
    marks.push_back({.x = error, .y = 100 * place / static_cast<double>(errors.size()), .text = row->case_name});
  }
  return marks;
}

bool equal(const std::vector<Mark>& a, const std::vector<Mark>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Mark& one, const Mark& other) { return one.x == other.x && one.y == other.y; });
}

Chart errors_chart(const std::string& metric, const Sets& sets, const Validation& validation) {
  Chart chart{.name = file_name("errors", metric),
              .title = "Errors, smallest first",
              .x = {.title = "absolute error of " + axis(metric).substr(0, axis(metric).find(" [")) + " [%]",
                    .logarithmic = true},
              .y = {.title = "rows with at most this error [%]", .from_zero = true}};
  Rows all;
  for (const auto& [name, rows] : sets) {
    all.insert(all.end(), rows.begin(), rows.end());
    if (sets.size() > 1) {
      chart.series.push_back({name, Look::steps, shares_of(rows)});
    }
  }
  const std::vector<Mark> predicted = shares_of(all);
  chart.series.push_back({"all", Look::steps, predicted});
  for (const auto& [name, rows] : validation.baselines) {
    Rows of_metric;
    for (const auto& [set, members] : sets_of(rows, metric)) {
      of_metric.insert(of_metric.end(), members.begin(), members.end());
    }
    if (std::vector<Mark> shares = shares_of(of_metric); !shares.empty() && !equal(shares, predicted)) {
      chart.series.push_back({"compare: " + name, Look::steps, std::move(shares)}); // it says something new
    }
  }
  return chart;
}

// The rows of a contest from the fastest to the slowest.
Chart ranking_chart(const std::string& contest, Rows rows, const std::string& metric) {
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.measured < b.measured; });
  ChartSeries measured{"measured", Look::line, {}};
  ChartSeries predicted{"predicted", Look::points, {}};
  for (std::size_t place = 0; place < rows.size(); ++place) {
    const auto at = static_cast<double>(place + 1);
    measured.marks.push_back({.x = at, .y = rows[place].measured, .text = rows[place].case_name});
    predicted.marks.push_back({.x = at, .y = rows[place].predicted, .text = rows[place].case_name});
  }
  return {.name = file_name("ranking", contest),
          .title = contest,
          .x = {.title = "plans from the fastest to the slowest, as measured"},
          .y = {.title = axis(metric), .from_zero = true},
          .series = {measured, predicted},
          .choice = "contest"};
}

// Predicted ratios of runs that differ in one setting against measured ones. Of pairs of a table that are alike to half
// a per cent, which no eye tells apart, the first is drawn.
Chart what_ifs_chart(const std::vector<WhatIf>& pairs) {
  Chart chart{.name = "what-ifs",
              .title = "Ratios of runs that differ in one setting",
              .x = {.title = "measured ratio", .logarithmic = true},
              .y = {.title = "predicted ratio", .logarithmic = true}};
  std::map<std::string, ChartSeries> series;
  std::set<std::tuple<std::string, long, long>> drawn;
  const auto place = [](double ratio) {
    constexpr double kApart = 0.005;
    return std::lround(std::log(ratio) / kApart);
  };
  double low = 1, high = 1;
  for (const WhatIf& pair : pairs) {
    if (!drawn.emplace(pair.group, place(pair.measured), place(pair.predicted)).second) {
      continue;
    }
    ChartSeries& of_table = series.try_emplace(pair.group, ChartSeries{pair.group, Look::points, {}}).first->second;
    of_table.marks.push_back(
        {.x = pair.measured, .y = pair.predicted, .text = pair.before + " to " + pair.after + ": " + pair.setting});
    low = std::min({low, pair.measured, pair.predicted});
    high = std::max({high, pair.measured, pair.predicted});
  }
  for (auto& [table, of_table] : series) {
    chart.series.push_back(std::move(of_table));
  }
  chart.series.push_back({"as measured", Look::guide, {{.x = low, .y = low}, {.x = high, .y = high}}});
  return chart;
}

} // namespace

std::vector<Chart> charts_of(const Validation& validation) {
  constexpr std::size_t kRanked = 3; // rows at least
  std::vector<std::string> metrics;
  for (const ValidationRow& row : validation.rows) {
    if (std::find(metrics.begin(), metrics.end(), row.metric) == metrics.end()) {
      metrics.push_back(row.metric);
    }
  }
  std::vector<Chart> charts;
  for (const std::string& metric : metrics) {
    const Sets sets = sets_of(validation.rows, metric);
    charts.push_back(predicted_chart(metric, sets));
    charts.push_back(errors_chart(metric, sets, validation));
    for (const auto& [name, rows] : sets) {
      if (rows.size() >= kRanked && !rows.front().contest.empty()) {
        charts.push_back(ranking_chart(name, rows, metric));
      }
    }
  }
  if (!validation.what_ifs.empty()) {
    charts.push_back(what_ifs_chart(validation.what_ifs));
  }
  return charts;
}

} // namespace stagecraft
