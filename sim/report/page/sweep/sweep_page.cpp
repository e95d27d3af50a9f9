// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/sweep/sweep_page.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <tuple>

#include "sim/base/units.hpp"
#include "sim/report/page/json_document.hpp"
#include "sim/report/page/run_values.hpp"
#include "sim/report/page/sweep/sweep_scale.hpp"
#include "sim/report/page/sweep/sweep_view.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostRows = 2000;

// The scale of each axis of a view: how its values are sorted and filtered, and the title of its column.
std::vector<Scale> scales_of(const SweepView& view) {
  std::vector<Scale> scales;
  for (const std::size_t axis : view.axes()) {
    scales.push_back(scale_of(view.results().axes[axis]));
  }
  return scales;
}

PageTable empty_table(const SweepView& view, const std::vector<Scale>& scales, const std::string& title) {
  PageTable table{.title = title, .columns = {}};
  for (const Scale& scale : scales) {
    table.columns.push_back(scale.axis.title);
  }
  for (const std::string_view column :
       {metric("iteration_seconds").heading, metric("samples_per_second").heading, std::string_view("USD per million"),
        metric("joules_per_sample").heading, metric("peak_memory_bytes").heading}) {
    table.columns.emplace_back(column);
  }
  if (view.outside() > 0) {
    table.columns.emplace_back("constraints");
  }
  table.columns.emplace_back("key");
  table.main = {"score"};
  for (std::size_t at = 0; at < scales.size(); ++at) {
    if (view.results().axes[view.axes()[at]].values.size() > 1) {
      table.main.push_back(scales[at].axis.title);
    }
  }
  for (const Metric* shown : {&metric("iteration_seconds"), &metric("samples_per_second")}) {
    table.main.emplace_back(shown->heading);
  }
  table.main.insert(table.main.end(), {"USD per million", "constraints"});
  return table;
}

PageCell axis_cell(const SweepView& view, const Scale& scale, std::size_t point, std::size_t axis) {
  const std::string& text = view.text(point, axis);
  if (scale.axis.names.empty() && view.has(point, axis)) {
    return {text, scale.places[view.value(point, axis)]};
  }
  const auto numbers = plain_numbers({text}); // among names there may be numbers
  return {text, numbers ? std::optional(numbers->front()) : std::nullopt};
}

std::vector<PageCell> row_of(const SweepView& view, const std::vector<Scale>& scales, std::size_t point) {
  std::vector<PageCell> row;
  for (std::size_t at = 0; at < scales.size(); ++at) {
    row.push_back(axis_cell(view, scales[at], point, view.axes()[at]));
  }
  for (const double figure : {view.results().iteration[point], view.results().samples_per_second[point],
                              view.results().dollars_per_million[point], view.results().joules_per_sample[point],
                              metric("peak_memory_bytes").scale * view.results().peak_memory[point]}) {
    row.push_back(number_cell(figure));
  }
  constexpr std::size_t kAfterCost = 3; // cost, energy and memory stand last
  row[row.size() - kAfterCost].text.insert(0, view.results().cost_is_assumed(point) ? kAssumedMark : "");
  if (view.outside() > 0) {
    row.push_back({view.counts(point) ? "kept" : "not kept"});
  }
  row.push_back({view.results().keys[point]});
  return row;
}

PageTable best_points(const SweepView& view) {
  const std::vector<Scale> scales = scales_of(view);
  PageTable table = empty_table(view, scales,
                                std::string("The points with the highest throughput") +
                                    (view.outside() > 0 ? ", first those within the constraints" : ""));
  std::vector<std::size_t> order(view.results().points());
  std::iota(order.begin(), order.end(), 0);
  const std::size_t shown = std::min(order.size(), kMostRows);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(),
                    [&](std::size_t a, std::size_t b) {
                      return std::tuple(!view.counts(a), -view.results().samples_per_second[a], a) <
                             std::tuple(!view.counts(b), -view.results().samples_per_second[b], b);
                    });
  for (std::size_t at = 0; at < shown; ++at) {
    table.rows.push_back(row_of(view, scales, order[at]));
  }
  table.note = shown < order.size() ? std::to_string(order.size() - shown) + " further ones are left out; "
                                                                             "`stagecraft points` has all"
                                    : "";
  return table;
}

std::vector<PageTable> answers(const SweepView& view) {
  const std::vector<Scale> scales = scales_of(view);
  std::vector<PageTable> tables;
  for (const SweepAnswer& answer : view.results().answers) {
    PageTable table = empty_table(view, scales, "The best" + asked_by(view, answer) + ": " + answer.words);
    table.columns.insert(table.columns.begin(), "score");
    for (const SweepAnswer::Point& one : answer.best) {
      table.rows.push_back(row_of(view, scales, one.point));
      table.rows.back().insert(table.rows.back().begin(), PageCell{one.text, one.score});
    }
    if (!table.rows.empty()) {
      tables.push_back(std::move(table));
    }
  }
  return tables;
}

PageTable reasons(const SweepResults& results) {
  PageTable table{.title = "Why points are not feasible", .columns = {"points", "reason", "one of them"}};
  for (const auto& [reason, count, one] : results.reasons) {
    table.rows.push_back({number_cell(static_cast<double>(count)), {reason}, {one}});
  }
  return table;
}

// Sets Chart::all of each chart to the chart of all points at the same index: both lists are made in the same way.
void add_all(std::vector<Chart> all, std::vector<Chart>& charts) {
  for (std::size_t at = 0; at < charts.size(); ++at) {
    Chart& chart = charts[at];
    const bool empty =
        std::all_of(chart.series.begin(), chart.series.end(), [](const ChartSeries& one) { return one.marks.empty(); });
    chart.note = empty ? "No point keeps to the constraints." : chart.note;
    chart.all = {std::move(all[at])};
  }
}

PageSwitch switch_to_all(const SweepView& view, const std::string& outside) {
  const std::string of_all = " of " + std::to_string(view.results().points()) + " points";
  const std::string which = " not keep to the constraints (" + view.results().constraints + ")";
  return {.label = "show all points",
          .off = std::to_string(view.outside()) + of_all + (view.outside() == 1 ? " does" : " do") + which +
                 (view.outside() == 1 ? " and is " : " and are ") + outside + ".",
          .on = "All " + std::to_string(view.results().points()) + " points count, also the " +
                std::to_string(view.outside()) + " that" + (view.outside() == 1 ? " does" : " do") + which + "."};
}

// Whether this is a chart of who wins, with only one winner.
bool is_settled(const Chart& chart) {
  const auto one_winner = [](const Chart& one) { return one.series.size() < 2; };
  return chart.choice == kWhoWins && one_winner(chart) && std::all_of(chart.all.begin(), chart.all.end(), one_winner);
}

} // namespace

DocumentPage sweep_page(const SweepResults& results) {
  const SweepView view(results);
  DocumentPage page{results.name.empty() ? "Sweep" : "Sweep: " + results.name, {}, results.inputs, sweep_answer(view)};
  page.sections.push_back({.title = "Findings", .sentences = sweep_findings(view)});
  page.sections.push_back({.title = "What was asked for", .sentences = {}, .tables = answers(view)});
  if (results.points() > 0) {
    const std::optional<SweepView> all = view.outside() > 0 ? std::optional(SweepView(results, true)) : std::nullopt;
    const auto add = [&](const char* title, std::vector<Chart> (*charts)(const SweepView&), const char* outside) {
      page.sections.push_back({.title = title, .sentences = {}, .charts = charts(view)});
      if (all) {
        add_all(charts(*all), page.sections.back().charts);
        page.sections.back().all = switch_to_all(view, outside);
      }
      std::erase_if(page.sections.back().charts, is_settled);
    };
    add("Along each axis", sweep_curves, "left out");
    add("Over two axes", sweep_maps, "left out");
    add("What no point beats", sweep_fronts, "drawn faint");
  }
  std::erase_if(page.sections, [](const PageSection& one) {
    return one.sentences.empty() && one.charts.empty() && one.tables.empty();
  });
  PageSection points{.title = "Points", .sentences = {}, .tables = {best_points(view)}};
  if (!results.reasons.empty()) {
    points.tables.push_back(reasons(results));
  }
  page.sections.push_back(std::move(points));
  return page;
}

} // namespace stagecraft
