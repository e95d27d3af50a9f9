// Figures that tables of measured runs have, their units, and what a run predicts for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "sim/base/error.hpp"
#include "sim/validate/truth/truth_row.hpp"

namespace stagecraft {

/// The parts of an iteration that a table's time is of.
enum class TimedParts { all, passes, forward };

/// What a run gives for all rows that measured it, as plain numbers.
struct PredictedRun {
  double iteration = 0;          ///< s
  double samples_per_second = 0; ///< of all devices
  double tokens_per_second = 0;  ///< of all devices
  double model_flops = 0;        ///< of an iteration
  double mfu = 0, hfu = 0;       ///< fractions of the nominal peak
  double devices = 1;
  std::vector<double> stage_memory;             ///< bytes, the most of any device of each stage; [stage]
  double forward = 0, backward = 0, weight = 0; ///< s, the longest pass of any stage, as of PassSpans
  double kept = 0;                              ///< bytes of activations at the peak, the most of any device
  double fixed = 0;                             ///< bytes of weights, gradients and optimiser, the most of any device
  double update = 0;                            ///< s, the longest optimiser step
  double watts = 0;                             ///< of a device, over the iteration
  double lacking = 0;                           ///< bytes by which a device holds more than it has
  double fits_share = 0;                        ///< of the computing time, what rests on fits to measurements

  double peak_memory() const;
  /// The same run as if it had only those parts.
  PredictedRun of(TimedParts parts) const;
};

/// A unit, as the first words of the cell, and the SI amount of one.
struct TruthUnit {
  std::string_view name;
  double scale = 1;
};

struct TruthMetric {
  std::string_view name, help;
  std::string_view key; ///< as results call it, in SI units
  std::array<TruthUnit, 4> units;
  double (*predict)(const PredictedRun& run);
  bool is_time = true;          ///< of the run's speed: bounds of it come from bounds of its time
  bool falls_with_time = false; ///< a rate
};

std::span<const TruthMetric> truth_metrics();

/// The metric called `name`, of those of this name the one that has the unit if any has; null where there is none that
/// is predicted.
const TruthMetric* find_truth_metric(std::string_view name, std::string_view unit);

/// Seconds of an iteration that a figure of a run means: those of the predicted one, scaled as the figure says.
double seconds_of_figure(const TruthMetric& metric, const PredictedRun& run, double figure);

/// The SI amount of a unit of the metric. InputError naming those that it has.
double scale_of(const TruthMetric& metric, const std::string& unit, const Where& where);

} // namespace stagecraft
