// The results of sweeps as charts need them: which points count, which axes vary, the best point of each cell.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/chart.hpp"
#include "sim/report/page/sweep/sweep_page.hpp"

namespace stagecraft {

/// A figure by which charts choose the best point.
struct ChartGoal {
  const char *name, *title;
  std::string_view axis;
  std::vector<double> SweepResults::*column;
  bool largest;
};
/// All goals, throughput first.
std::span<const ChartGoal> chart_goals();

class SweepView {
public:
  /// A view of the points that keep to the constraints, or with `all` of all points. `results` must outlive it.
  explicit SweepView(const SweepResults& results, bool all = false);

  const SweepResults& results() const { return results_; }
  /// The axes, without one that repeats another; varied(): those of them with several values.
  const std::vector<std::size_t>& axes() const { return axes_; }
  const std::vector<std::size_t>& varied() const { return varied_; }
  /// Whether nearly every value of the axis occurs in only one combination, as for random draws. Two such values then
  /// differ in all axes at once, and cannot be compared.
  bool drawn(std::size_t axis) const { return drawn_[axis] != 0; }
  /// The goals that have figures.
  const std::vector<const ChartGoal*>& goals() const { return goals_; }
  /// How many points break the constraints, and whether the view counts this point.
  std::size_t outside() const { return outside_; }
  bool counts(std::size_t point) const { return all_ || outside_ == 0 || results_.outside[point] == 0; }

  /// Index of a point's value on an axis, whether it has one, and the value in words.
  std::uint32_t value(std::size_t point, std::size_t axis) const {
    return results_.value[point * results_.axes.size() + axis];
  }
  bool has(std::size_t point, std::size_t axis) const { return value(point, axis) != kNoValue; }
  const std::string& text(std::size_t point, std::size_t axis) const {
    static const std::string kNone;
    return has(point, axis) ? results_.axes[axis].values[value(point, axis)] : kNone;
  }
  /// A text that distinguishes a point from the others.
  std::string label(std::size_t point) const;
  /// The marks with labels as texts; Mark::value holds the index of the point and is cleared.
  std::vector<Mark> labelled(std::vector<Mark> marks) const;

  /// The best point of each cell for a goal, -1 where there is none. cell(point) gives the cell of a point, or
  /// kNowhere.
  static constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();
  template <class Cell> std::vector<std::int64_t> best_of(std::size_t cells, const ChartGoal& goal, Cell cell) const {
    std::vector<std::int64_t> best(cells, -1);
    const std::vector<double>& column = results_.*goal.column;
    for (std::size_t point = 0; point < results_.points(); ++point) {
      const std::size_t at = counts(point) && std::isfinite(column[point]) ? cell(point) : kNowhere;
      if (at != kNowhere &&
          (best[at] < 0 || is_better(column[point], column[static_cast<std::size_t>(best[at])], goal))) {
        best[at] = static_cast<std::int64_t>(point);
      }
    }
    return best;
  }
  static bool is_better(double a, double b, const ChartGoal& goal) { return goal.largest ? a > b : a < b; }

  /// The axis whose values get colours: the strategy, or else the schedule, unless that is `besides`.
  std::optional<std::size_t> colour_axis(std::optional<std::size_t> besides = std::nullopt) const;
  /// The number of a point's series on that axis. The last number that has a colour stands for all further series.
  std::size_t series_of(std::size_t point, std::optional<std::size_t> colour) const;
  std::size_t series(std::optional<std::size_t> colour) const;
  std::string name_of_series(std::size_t colour, std::size_t number) const;
  /// The number of its colour: of a strategy that of all pages, else its own.
  int color_of_series(std::size_t colour, std::size_t number) const;

private:
  bool tells(std::size_t axis) const;
  std::vector<char> drawn_axes() const;

  const SweepResults& results_;
  bool all_;
  std::size_t outside_ = 0;
  std::vector<std::size_t> axes_, varied_;
  std::vector<char> drawn_; // [axis]
  std::vector<const ChartGoal*> goals_;
};

/// Charts along each axis, over each pair of axes, and of Pareto fronts.
std::vector<Chart> sweep_curves(const SweepView& view);
std::vector<Chart> sweep_maps(const SweepView& view);
std::vector<Chart> sweep_fronts(const SweepView& view);

/// The answer of sweeps, and what else there is to know, the largest change first.
Answer sweep_answer(const SweepView& view);
std::vector<std::string> sweep_findings(const SweepView& view);
/// " by sweep 2, NAME"; "" where there is only one sweep.
std::string asked_by(const SweepView& view, const SweepAnswer& answer);

/// The choice to which those charts over two axes belong that show who wins.
inline constexpr const char* kWhoWins = "Who wins by throughput";

} // namespace stagecraft
