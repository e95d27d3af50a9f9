// Curves of a sweep: the best points along each axis.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>

#include "sim/report/page/sweep/sweep_scale.hpp"
#include "sim/report/page/sweep/sweep_view.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostPoints = 2000; // points of a curve at most: more than a window has pixels

// Replaces each `together` neighbouring marks of a curve by their best.
std::vector<Mark> thinned(const std::vector<Mark>& marks, std::size_t together, const ChartGoal& goal) {
  std::vector<Mark> some;
  for (std::size_t first = 0; first < marks.size(); first += together) {
    const auto begin = marks.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = marks.begin() + static_cast<std::ptrdiff_t>(std::min(marks.size(), first + together));
    some.push_back(*std::min_element(
        begin, end, [&](const Mark& a, const Mark& b) { return SweepView::is_better(a.y, b.y, goal); }));
  }
  return some;
}

// A mark for the best point of each value, along the scale; Mark::value holds the point's index.
std::vector<Mark> marks_of(std::span<const std::int64_t> best, const Scale& scale, const std::vector<double>& column) {
  std::vector<Mark> marks;
  for (std::size_t at = 0; at < best.size(); ++at) {
    if (best[at] >= 0) {
      marks.push_back({.x = scale.places[at],
                       .y = column[static_cast<std::size_t>(best[at])],
                       .value = static_cast<double>(best[at])});
    }
  }
  std::stable_sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) { return a.x < b.x; });
  return marks;
}

Chart curve(const SweepView& view, std::size_t axis, const ChartGoal& goal) {
  const SweptAxis& along = view.results().axes[axis];
  const Scale scale = scale_of(along);
  const bool drawn = view.drawn(axis);
  const std::optional<std::size_t> colour = view.colour_axis(axis);
  const std::size_t names = view.series(colour);
  Chart chart{.name = std::string(goal.name) + "-by-" + file_name_of(name_of(along)),
              .title = std::string(goal.title) + " by " + name_of(along) +
                       (drawn ? ", each value in a draw of its own" : ", all else at its best"),
              .x = scale.axis,
              .y = {.title = std::string(goal.axis), .from_zero = true},
              .choice = goal.title};
  const std::size_t together = (along.values.size() + kMostPoints - 1) / kMostPoints;
  if (together > 1) {
    chart.note = "A point is the best of " + std::to_string(together) + " neighbouring values.";
  }
  const auto best = view.best_of(along.values.size() * names, goal, [&](std::size_t point) {
    return view.has(point, axis) ? view.series_of(point, colour) * along.values.size() + view.value(point, axis)
                                 : SweepView::kNowhere;
  });
  for (std::size_t name = 0; name < names; ++name) {
    const std::span<const std::int64_t> own = std::span(best).subspan(name * along.values.size(), along.values.size());
    std::vector<Mark> marks = marks_of(own, scale, view.results().*goal.column);
    if (together > 1) {
      marks = thinned(marks, together, goal);
    }
    if (!marks.empty()) {
      chart.series.push_back({colour ? view.name_of_series(*colour, name) : "", drawn ? Look::points : Look::line,
                              view.labelled(std::move(marks)), colour ? view.color_of_series(*colour, name) : 0});
    }
  }
  return chart;
}

} // namespace

std::vector<Chart> sweep_curves(const SweepView& view) {
  std::vector<Chart> charts;
  for (const ChartGoal* goal : view.goals()) {
    for (const std::size_t axis : view.varied()) {
      charts.push_back(curve(view, axis, *goal));
    }
  }
  return charts;
}

} // namespace stagecraft
