// Results of sweeps as their charts see them: which points count, which axes vary, the best point of each cell.
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
#include "sim/report/page/sweep_page.hpp"

namespace stagecraft {

/// A figure that charts look for the best of.
struct ChartGoal {
  const char *name, *title;
  std::string_view axis;
  std::vector<double> SweepResults::*column;
  bool largest;
};
/// All of them, throughput first.
std::span<const ChartGoal> chart_goals();

class SweepView {
public:
  /// Of the points that keep to the constraints, or of `all`. The results must stay.
  explicit SweepView(const SweepResults& results, bool all = false);

  const SweepResults& results() const { return results_; }
  /// All axes but one that says the same as another, and those of them with several values.
  const std::vector<std::size_t>& axes() const { return axes_; }
  const std::vector<std::size_t>& varied() const { return varied_; }
  /// Whether nearly each value of an axis stands in one combination alone, as draws do: what differs between two values
  /// then differs by all axes.
  bool drawn(std::size_t axis) const { return drawn_[axis] != 0; }
  /// Those of which there are figures.
  const std::vector<const ChartGoal*>& goals() const { return goals_; }
  /// How many points do not keep to the constraints, and whether this one counts.
  std::size_t outside() const { return outside_; }
  bool counts(std::size_t point) const { return all_ || outside_ == 0 || results_.outside[point] == 0; }

  /// Which value of an axis a point has, if any, and in words.
  std::uint32_t value(std::size_t point, std::size_t axis) const {
    return results_.value[point * results_.axes.size() + axis];
  }
  bool has(std::size_t point, std::size_t axis) const { return value(point, axis) != kNoValue; }
  const std::string& text(std::size_t point, std::size_t axis) const {
    static const std::string kNone;
    return has(point, axis) ? results_.axes[axis].values[value(point, axis)] : kNone;
  }
  /// What tells a point from the others.
  std::string label(std::size_t point) const;
  /// Marks whose values are points, with their labels in the place of these.
  std::vector<Mark> labelled(std::vector<Mark> marks) const;

  /// The best point of each cell by a goal, cell(point) being the number of its cell, or kNowhere; -1: it has none.
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

  /// The axis that tells series apart: the strategy, or else the schedule, unless it is `besides`.
  std::optional<std::size_t> colour_axis(std::optional<std::size_t> besides = std::nullopt) const;
  /// The series of a point by that axis, and its name: the last of so many as have names stands for all further ones.
  std::size_t series_of(std::size_t point, std::optional<std::size_t> colour) const;
  std::size_t series(std::optional<std::size_t> colour) const;
  std::string name_of_series(std::size_t colour, std::size_t number) const;

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

/// Charts along each axis, over every two of them, and of what no point beats.
std::vector<Chart> sweep_curves(const SweepView& view);
std::vector<Chart> sweep_maps(const SweepView& view);
std::vector<Chart> sweep_fronts(const SweepView& view);

/// Of charts over two axes: what those that show who wins are chosen by.
inline constexpr const char* kWhoWins = "Who wins by throughput";

} // namespace stagecraft
