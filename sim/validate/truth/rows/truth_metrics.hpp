// Figures that tables of measured runs have, their units, and what a run predicts for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "sim/base/error.hpp"
#include "sim/validate/truth/rows/truth_row.hpp"

namespace stagecraft {

/// The parts of an iteration that a table's time is of.
enum class TimedParts { all, passes, forward };
/// What the row's note says that its time is of.
TimedParts timed_parts(const TruthRow& row);

/// What a figure is of. It says what its prediction rests on, and whose errors tell how far off it may be.
enum class FigureKind {
  time,         ///< or a rate: bounds of it come from bounds of the run's time
  power,        ///< of a device
  memory,       ///< of a device
  memory_share, ///< of what another plan of the model holds
  time_share,   ///< of the run's time
  transfer,     ///< the time of one
  training,     ///< of a whole training, which rests on how many samples it takes: assumed, not predicted
  verdict,      ///< whether the run fits: right or wrong, not off by a share
};

/// Whether errors of other models bound the figure (families_of()).
constexpr bool has_families(FigureKind kind) {
  return kind == FigureKind::time || kind == FigureKind::power || kind == FigureKind::memory;
}
/// Whether a constant that was fitted on the model's times changes the figure.
constexpr bool rests_on_speed(FigureKind kind) {
  return kind != FigureKind::memory && kind != FigureKind::memory_share && kind != FigureKind::verdict;
}

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
  double stage_forward = 0, stage_backward = 0; ///< s, of the middle stage by each, as of PassSpans
  double stage_weight = 0;                      ///< the same of gradients of weights
  double kept = 0;                              ///< bytes of activations at the peak, the most of any device
  double fixed = 0;                             ///< bytes of weights, gradients and optimiser, the most of any device
  double update = 0;                            ///< s, the longest optimiser step
  double watts = 0;                             ///< of a device, over the iteration
  double lacking = 0;                           ///< bytes by which a device holds more than it has; below 0: left
  double fits_share = 0;                        ///< of the computing time, what rests on fits to measurements
  double busy_share = 0;                        ///< of the stage that runs longest, as of PassSpans
  double transfer = 0;                          ///< s, the longest transfer between stages
  double training = 0;                          ///< s of the whole training; of a row that has such a figure
  bool attention = false;                       ///< its model has attention
  bool measured_device = false;                 ///< has_measured_devices()

  double peak_memory() const;
  /// The same run as if it had only those parts.
  PredictedRun of(TimedParts parts) const;
};

/// A unit, as the first words of the cell, and the SI amount of one.
struct TruthUnit {
  std::string_view name;
  double scale = 1;
};

constexpr double same_figure(double figure) { return figure; }

struct TruthMetric {
  std::string_view name, help;
  std::string_view key; ///< as results call it, in SI units
  std::array<TruthUnit, 4> units;
  double (*predict)(const PredictedRun& run);
  FigureKind kind = FigureKind::time;
  bool falls_with_time = false;                ///< a rate
  TruthRow (*base)(TruthRow row) = nullptr;    ///< the run whose figure this one is a part of; null: it is absolute
  double (*told)(double figure) = same_figure; ///< what is compared of a figure of the table, in SI units
  double most = std::numeric_limits<double>::infinity(); ///< of a figure of the table, in SI units
};

std::span<const TruthMetric> truth_metrics();

/// The metric called `name`, of those of this name the one that has the unit if any has; null where there is none that
/// is predicted.
const TruthMetric* find_truth_metric(std::string_view name, std::string_view unit);

/// The name here of a metric that tables call otherwise, as `mfu` or `step_time`; the name itself where none is known.
std::string usual_metric(const std::string& name);

/// Why a metric that tables have is not predicted; "": it is, or nothing is known of it.
std::string_view why_not_predicted(std::string_view name);

/// Seconds of an iteration that a figure of a run means: those of the predicted one, scaled as the figure says.
double seconds_of_figure(const TruthMetric& metric, const PredictedRun& run, double figure);

/// The SI amount of a unit of the metric. InputError naming those that it has.
double scale_of(const TruthMetric& metric, const std::string& unit, const Where& where);

/// Whether the figure is of whole iterations: their time, or a rate.
bool of_whole_iterations(const TruthMetric& metric);

} // namespace stagecraft
