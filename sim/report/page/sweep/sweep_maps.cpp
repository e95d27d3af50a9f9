// Maps of a sweep: the best value, and who wins, over each pair of axes.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "sim/report/page/strategy_colors.hpp"
#include "sim/report/page/sweep/sweep_scale.hpp"
#include "sim/report/page/sweep/sweep_view.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostPairs = 12; // pairs of axes at most

// The two axes of a map; the one with more values lies across.
struct AxisPair {
  std::size_t across, down;
  Places columns, rows;

  std::size_t cells() const { return columns.names.size() * rows.names.size(); }
};

// The pairs of axes whose maps have the most cells.
std::vector<AxisPair> pairs_of(const SweepView& view) {
  struct Candidate {
    std::size_t across, down;
    SharedPlaces shared;
  };
  const std::vector<SweptAxis>& axes = view.results().axes;
  const std::vector<std::size_t>& varied = view.varied();
  std::vector<Candidate> candidates;
  const auto values = [&](std::size_t axis) { return axes[axis].values.size(); };
  for (std::size_t a = 0; a < varied.size(); ++a) {
    for (std::size_t b = a + 1; b < varied.size(); ++b) {
      const bool swapped = values(varied[a]) < values(varied[b]);
      const std::size_t across = varied[swapped ? b : a], down = varied[swapped ? a : b];
      candidates.push_back({across, down, shared_places(values(across), values(down))});
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& one, const Candidate& other) { return one.shared.cells > other.shared.cells; });
  candidates.resize(std::min(candidates.size(), kMostPairs));
  std::map<std::size_t, std::vector<std::size_t>> orders; // [axis]: the order of its values, sorted once
  const auto places = [&](std::size_t axis, std::size_t shared) {
    std::vector<std::size_t>& order = orders[axis];
    if (order.empty()) {
      order = order_of(axes[axis]);
    }
    return places_of(axes[axis], order, shared);
  };
  std::vector<AxisPair> pairs;
  for (const auto& [across, down, shared] : candidates) {
    pairs.push_back({across, down, places(across, shared.across), places(down, shared.down)});
  }
  return pairs;
}

// A map with axes but no cells.
Chart empty_map(const SweepView& view, const AxisPair& pair, const std::string& what, const std::string& title) {
  const std::vector<SweptAxis>& axes = view.results().axes;
  const std::string x = name_of(axes[pair.across]), y = name_of(axes[pair.down]);
  Chart chart{.name = what + "-over-" + file_name_of(x + "-" + y),
              .title = title + " over " + x + " and " + y,
              .x = {.title = x, .names = pair.columns.names},
              .y = {.title = y, .names = pair.rows.names}};
  const auto among = [](const Places& places, const char* where) {
    return places.shared > 1 ? std::to_string(places.shared) + " neighbouring values " + where : "";
  };
  const std::string across = among(pair.columns, "across"), down = among(pair.rows, "down");
  if (!across.empty() || !down.empty()) {
    chart.note = "A cell is the best of " + across + (across.empty() || down.empty() ? "" : " and ") + down + ".";
  }
  return chart;
}

Mark mark_of(const SweepView& view, const AxisPair& pair, std::size_t point) {
  return {.x = static_cast<double>(pair.columns.of[view.value(point, pair.across)]),
          .y = static_cast<double>(pair.rows.of[view.value(point, pair.down)]),
          .text = view.label(point)};
}

// The best point of each cell.
std::vector<std::size_t> cells(const SweepView& view, const AxisPair& pair, const ChartGoal& goal) {
  const auto best = view.best_of(pair.cells(), goal, [&](std::size_t point) {
    if (!view.has(point, pair.down) || !view.has(point, pair.across)) {
      return SweepView::kNowhere;
    }
    return pair.rows.of[view.value(point, pair.down)] * pair.columns.names.size() +
           pair.columns.of[view.value(point, pair.across)];
  });
  std::vector<std::size_t> points;
  for (const std::int64_t point : best) {
    if (point >= 0) {
      points.push_back(static_cast<std::size_t>(point));
    }
  }
  return points;
}

Chart map(const SweepView& view, const AxisPair& pair, const ChartGoal& goal) {
  Chart chart = empty_map(view, pair, goal.name, goal.title);
  chart.value = goal.axis;
  chart.least_is_best = !goal.largest;
  chart.series = {{"", Look::cells, {}}};
  chart.choice = std::string(goal.title) + " at its best";
  for (const std::size_t point : cells(view, pair, goal)) {
    Mark& mark = chart.series[0].marks.emplace_back(mark_of(view, pair, point));
    mark.value = (view.results().*goal.column)[point];
  }
  return chart;
}

// The map of which strategy, or schedule, wins in each cell.
Chart winners(const SweepView& view, const AxisPair& pair, std::size_t who) {
  const std::string& key = view.results().axes[who].key;
  Chart chart = empty_map(view, pair, key + "-that-wins", "The " + key + " that wins");
  chart.choice = kWhoWins;
  std::map<std::uint32_t, ChartSeries> series;
  for (const std::size_t point : cells(view, pair, chart_goals().front())) {
    ChartSeries& one = series[view.value(point, who)];
    one.name = view.text(point, who);
    one.color = key == "strategy" ? strategy_color(one.name) : static_cast<int>(view.value(point, who));
    one.marks.push_back(mark_of(view, pair, point));
  }
  for (auto& [name, one] : series) {
    chart.series.push_back(std::move(one));
  }
  return chart;
}

} // namespace

std::vector<Chart> sweep_maps(const SweepView& view) {
  std::vector<Chart> charts;
  const std::vector<AxisPair> pairs = pairs_of(view);
  for (const ChartGoal* goal : view.goals()) {
    for (const AxisPair& pair : pairs) {
      charts.push_back(map(view, pair, *goal));
    }
  }
  for (const AxisPair& pair : pairs) {
    for (const std::size_t who : view.varied()) {
      const std::string& key = view.results().axes[who].key;
      if ((key == "strategy" || key == "schedule") && who != pair.across && who != pair.down) {
        charts.push_back(winners(view, pair, who));
      }
    }
  }
  return charts;
}

} // namespace stagecraft
