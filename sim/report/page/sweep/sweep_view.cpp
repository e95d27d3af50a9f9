// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/sweep/sweep_view.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "sim/report/page/strategy_colors.hpp"
#include "sim/report/page/sweep/sweep_scale.hpp"
#include "sim/result/metrics_table.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kNamed = 8; // series with a name of their own at most
constexpr std::string_view kRunMicroBatches = "micro_batches";
constexpr std::array kGoals = {
    ChartGoal{"throughput", "Throughput", "samples per second", &SweepResults::samples_per_second,
              metric("samples_per_second").better == Better::more},
    ChartGoal{"cost", "Cost", metric("usd_per_million_samples").heading, &SweepResults::dollars_per_million,
              metric("usd_per_million_samples").better == Better::more},
    ChartGoal{"energy", "Energy", metric("joules_per_sample").heading, &SweepResults::joules_per_sample,
              metric("joules_per_sample").better == Better::more},
};

} // namespace

std::span<const ChartGoal> chart_goals() { return kGoals; }

SweepView::SweepView(const SweepResults& results, bool all) : results_(results), all_(all) {
  outside_ = static_cast<std::size_t>(std::count(results.outside.begin(), results.outside.end(), 1));
  for (std::size_t axis = 0; axis < results.axes.size(); ++axis) {
    if (!tells(axis)) {
      continue;
    }
    axes_.push_back(axis);
    if (results.axes[axis].values.size() > 1) {
      varied_.push_back(axis);
    }
  }
  drawn_ = drawn_axes();
  for (const ChartGoal& goal : kGoals) {
    const std::vector<double>& column = results.*goal.column;
    if (std::any_of(column.begin(), column.end(), [](double value) { return value > 0; })) {
      goals_.push_back(&goal);
    }
  }
}

// Whether an axis adds information: a run's number of micro-batches does not if an axis of the sweep says the same.
bool SweepView::tells(std::size_t axis) const {
  const std::vector<SweptAxis>& axes = results_.axes;
  for (std::size_t other = 0; axes[axis].key == kRunMicroBatches && other < axes.size(); ++other) {
    const std::vector<std::string> keys = parts_of_axis(axes[other].key);
    const auto same = std::find(keys.begin(), keys.end(), "training.micro_batches");
    if (same == keys.end()) {
      continue;
    }
    const auto part = static_cast<std::size_t>(same - keys.begin());
    std::vector<std::string> counts; // [value]: its number of micro-batches
    for (const std::string& value : axes[other].values) {
      const std::vector<std::string> parts = parts_of_axis(value);
      counts.push_back(part < parts.size() ? parts[part] : "");
    }
    for (std::size_t point = 0; point < results_.points(); ++point) {
      if (!has(point, other) || text(point, axis) != counts[value(point, other)]) {
        return true;
      }
    }
    return false;
  }
  return true;
}

std::vector<char> SweepView::drawn_axes() const {
  std::vector<char> drawn(results_.axes.size(), 0);
  std::vector<std::size_t> settings;
  for (const std::size_t axis : varied_) {
    if (std::find(kRunAxes.begin(), kRunAxes.end(), results_.axes[axis].key) == kRunAxes.end()) {
      settings.push_back(axis);
    }
  }
  if (settings.size() < 2) {
    return drawn;
  }
  std::unordered_set<std::uint64_t> combinations; // as hashes; the rare collision does no harm
  for (std::size_t point = 0; point < results_.points(); ++point) {
    std::uint64_t hash = 0;
    for (const std::size_t axis : settings) {
      constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15U;
      hash = (hash ^ value(point, axis)) * kOdd;
      hash ^= hash >> 32U;
    }
    combinations.insert(hash);
  }
  for (const std::size_t axis : settings) {
    drawn[axis] = combinations.size() < 2 * results_.axes[axis].values.size() ? 1 : 0;
  }
  return drawn;
}

std::string SweepView::label(std::size_t point) const {
  std::string label;
  for (const std::size_t axis : varied_) {
    if (has(point, axis)) {
      label += (label.empty() ? "" : ", ") + value_in_words(results_.axes[axis], text(point, axis));
    }
  }
  return label + (all_ && results_.outside[point] != 0 ? ", outside the constraints" : "");
}

std::vector<Mark> SweepView::labelled(std::vector<Mark> marks) const {
  for (Mark& mark : marks) {
    mark.text = label(static_cast<std::size_t>(mark.value));
    mark.value = Mark::kNone;
  }
  return marks;
}

std::optional<std::size_t> SweepView::colour_axis(std::optional<std::size_t> besides) const {
  for (const char* key : {"strategy", "schedule"}) {
    for (const std::size_t axis : varied_) {
      if (axis != besides && results_.axes[axis].key == key) {
        return axis;
      }
    }
  }
  return std::nullopt;
}

std::size_t SweepView::series(std::optional<std::size_t> colour) const {
  return colour ? std::min(kNamed, results_.axes[*colour].values.size()) : 1;
}

std::size_t SweepView::series_of(std::size_t point, std::optional<std::size_t> colour) const {
  return colour ? std::min<std::size_t>(kNamed - 1, value(point, *colour)) : 0;
}

int SweepView::color_of_series(std::size_t colour, std::size_t number) const {
  return results_.axes[colour].key == "strategy" ? strategy_color(name_of_series(colour, number))
                                                 : static_cast<int>(number);
}

std::string SweepView::name_of_series(std::size_t colour, std::size_t number) const {
  const std::vector<std::string>& values = results_.axes[colour].values;
  return number + 1 == kNamed && values.size() > kNamed ? "others" : values[number];
}

} // namespace stagecraft
