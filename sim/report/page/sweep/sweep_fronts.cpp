// Fronts of a sweep: time per sample against cost, energy or memory.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "sim/base/random.hpp"
#include "sim/report/page/run_values.hpp"
#include "sim/report/page/sweep/sweep_view.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostFrontPoints = 2000; // points of a cloud at most

// At most kMostFrontPoints of the marks, drawn at random, in their order (Knuth, The Art of Computer Programming 2,
// algorithm S). Taking every n-th could miss all points of one value, since these stand at equal distances.
std::vector<Mark> thinned(const std::vector<Mark>& marks) {
  Random random(1);
  std::size_t wanted = std::min(marks.size(), kMostFrontPoints);
  std::vector<Mark> some;
  for (std::size_t at = 0; wanted > 0; ++at) {
    if (static_cast<std::size_t>(random.below(static_cast<int>(marks.size() - at))) < wanted) {
      some.push_back(marks[at]);
      --wanted;
    }
  }
  return some;
}

// Series of points by strategy or schedule; Mark::value holds the index of the point.
std::vector<ChartSeries> cloud(const SweepView& view, const std::vector<Mark>& points) {
  const std::optional<std::size_t> colour = view.colour_axis();
  std::map<std::size_t, ChartSeries> series;
  for (const Mark& mark : points) {
    const std::size_t number = view.series_of(static_cast<std::size_t>(mark.value), colour);
    ChartSeries& one = series[number];
    one.name = colour ? view.name_of_series(*colour, number) : "points";
    one.color = colour ? view.color_of_series(*colour, number) : 0;
    one.marks.push_back(mark);
  }
  std::vector<ChartSeries> all;
  for (auto& [number, one] : series) {
    one.marks = view.labelled(std::move(one.marks));
    all.push_back(std::move(one));
  }
  return all;
}

// What a sample costs besides time.
struct Expense {
  const char *name, *title;
  std::string_view unit;
  std::vector<double> SweepResults::*column;
  double scale;
};

Chart front(const SweepView& view, const Expense& expense) {
  Chart chart{.name = std::string("front-") + expense.name,
              .title = expense.title,
              .x = {.title = "time per sample [ms]", .logarithmic = true},
              .y = {.title = std::string(expense.unit), .logarithmic = true}};
  constexpr double kMilli = 1000;
  const SweepResults& results = view.results();
  const std::vector<double>& column = results.*expense.column;
  std::vector<Mark> inside, outside;
  for (std::size_t point = 0; point < results.points(); ++point) {
    if (std::isfinite(column[point]) && results.samples_per_second[point] > 0) {
      (view.counts(point) ? inside : outside)
          .push_back({.x = kMilli / results.samples_per_second[point],
                      .y = column[point] * expense.scale,
                      .value = static_cast<double>(point)});
    }
  }
  const std::vector<Mark> drawn = thinned(inside), faint = thinned(outside);
  if (const std::size_t all = inside.size() + outside.size(), shown = drawn.size() + faint.size(); shown < all) {
    chart.note = std::to_string(shown) + " of " + std::to_string(all) +
                 " points are drawn, picked by lot; the front is of all" +
                 (outside.empty() ? "." : " that keep to the constraints.");
  }
  if (expense.column == &SweepResults::dollars_per_million && !results.prices.empty()) {
    chart.note += (chart.note.empty() ? "" : " ") + results.prices;
  }
  chart.series = cloud(view, drawn);
  if (!outside.empty()) {
    chart.series.push_back({"outside the constraints", Look::faint, view.labelled(faint)});
  }
  if (!inside.empty()) {
    chart.series.push_back({"none is better in both", Look::front, view.labelled(front_of(std::move(inside)))});
  }
  return chart;
}

} // namespace

std::vector<Chart> sweep_fronts(const SweepView& view) {
  constexpr std::array kExpenses = {
      Expense{"cost", "Time against money", metric("usd_per_million_samples").heading,
              &SweepResults::dollars_per_million, 1},
      Expense{"energy", "Time against energy", metric("joules_per_sample").heading, &SweepResults::joules_per_sample,
              1},
      Expense{"memory", "Time against memory", "largest peak memory of a device [GiB]", &SweepResults::peak_memory,
              metric("peak_memory_bytes").scale},
  };
  std::vector<Chart> charts;
  for (const Expense& expense : kExpenses) {
    const std::vector<double>& column = view.results().*expense.column;
    if (std::any_of(column.begin(), column.end(), [](double value) { return value > 0; })) {
      charts.push_back(front(view, expense));
    }
  }
  return charts;
}

} // namespace stagecraft
