// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/space/sweep_figures.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stagecraft {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

const Run& run_of(const Prepared& prepared) { return prepared.run; }
const Metrics& metrics_of(const Prepared& prepared) { return prepared.run.metrics; }

template <class Quantity> double largest(const std::vector<Quantity>& values) {
  return values.empty() ? kNone : std::max_element(values.begin(), values.end())->value;
}

double mean_power(const Prepared& prepared) {
  const Metrics& metrics = metrics_of(prepared);
  return metrics.energy.total().value / metrics.iteration.value;
}

double perturbed(const Prepared& prepared, Seconds RunSpread::*quantile) {
  return run_of(prepared).perturbed ? ((*run_of(prepared).perturbed).*quantile).value : kNone;
}

double drawn(const Prepared& prepared, Seconds RunSpread::*quantile) {
  return run_of(prepared).confidence ? (run_of(prepared).confidence->iteration.*quantile).value : kNone;
}

constexpr std::array<FigureRow, kFigures> kTable = {{
    {"iteration_seconds", "s", "period of the steady state", [](auto& one) { return metrics_of(one).iteration.value; }},
    {"makespan_seconds", "s", "one iteration alone", [](auto& one) { return metrics_of(one).makespan.value; }},
    {"samples_per_second", "1/s", "", [](auto& one) { return run_of(one).samples_per_second; }},
    {"bubble_fraction", "", "", [](auto& one) { return metrics_of(one).bubble_fraction; }},
    {"load_imbalance", "", "", [](auto& one) { return metrics_of(one).load_imbalance; }},
    {"exposed_communication_seconds", "s", "of the device that waits longest",
     [](auto& one) { return largest(metrics_of(one).exposed); }},
    {"data_stall_seconds", "s", "", [](auto& one) { return run_of(one).data_stall.value; }},
    {"peak_memory_bytes", "B", "of the device that needs most",
     [](auto& one) { return largest(metrics_of(one).peak_memory); }},
    {"energy_joules", "J", "per iteration", [](auto& one) { return metrics_of(one).energy.total().value; }},
    {"joules_per_sample", "J", "", [](auto& one) { return run_of(one).energy_per_sample.value; }},
    {"mean_power_watts", "W", "", mean_power},
    {"cost_usd", "USD", "per iteration", [](auto& one) { return metrics_of(one).cost.value; }},
    {"usd_per_million_samples", "USD", "", [](auto& one) { return run_of(one).cost_per_million_samples.value; }},
    {"estimate_seconds", "s", "closed form of an iteration", [](auto& one) { return run_of(one).estimate.value; }},
    {"bottleneck_seconds", "s", "per micro-batch", [](auto& one) { return run_of(one).bottleneck.value; }},
    {"devices", "", "in use",
     [](auto& one) {
       const std::size_t twins = metrics_of(one).busy.size();
       return twins > 0 ? static_cast<double>(twins) : kNone;
     }},
    {"stages", "", "", [](auto& one) { return static_cast<double>(one.plan.stages.size()); }},
    {"tasks", "", "executed by the engine", [](auto& one) { return static_cast<double>(metrics_of(one).tasks); }},
    {"staleness_steps", "", "of the stage whose gradients are latest",
     [](auto& one) {
       const std::vector<double>& steps = run_of(one).staleness;
       return steps.empty() ? 0.0 : *std::max_element(steps.begin(), steps.end());
     }},
    {"perturbed_p5_seconds", "s", "where the study perturbs",
     [](auto& one) { return perturbed(one, &RunSpread::low); }},
    {"perturbed_median_seconds", "s", "", [](auto& one) { return perturbed(one, &RunSpread::median); }},
    {"perturbed_p95_seconds", "s", "", [](auto& one) { return perturbed(one, &RunSpread::high); }},
    {"confidence_p5_seconds", "s", "where the study draws the cost model's errors",
     [](auto& one) { return drawn(one, &RunSpread::low); }},
    {"confidence_median_seconds", "s", "", [](auto& one) { return drawn(one, &RunSpread::median); }},
    {"confidence_p95_seconds", "s", "", [](auto& one) { return drawn(one, &RunSpread::high); }},
}};

} // namespace

std::span<const FigureRow, kFigures> figures() { return kTable; }

namespace {

// Twelve significant digits: more than any engine is good for, and shorter to store.
double rounded(double value) {
  constexpr double kAll = 1e12; // integers below have so many digits at most
  if (!std::isfinite(value) || (value == std::floor(value) && std::abs(value) < kAll)) {
    return value;
  }
  static constexpr std::array kTens = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                       1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  // Powers of ten up to 1e22 are exact, so one of them is all that is rounded beside the digits themselves.
  const double amount = std::abs(value);
  std::size_t places = 0; // after the point; or before it, of large numbers
  if (amount >= kAll) {
    while (places + 1 < kTens.size() && amount / kTens[places] >= kAll) {
      ++places;
    }
    return std::round(value / kTens[places]) * kTens[places];
  }
  while (places + 1 < kTens.size() && amount * kTens[places] < kAll / 10) {
    ++places;
  }
  return std::round(value * kTens[places]) / kTens[places];
}

} // namespace

Figures figures_of(const Prepared& prepared) {
  Figures values{};
  for (std::size_t i = 0; i < kFigures; ++i) {
    values.at(i) = rounded(kTable.at(i).of(prepared));
  }
  return values;
}

bool is_estimated(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kKnown = {"iteration_seconds",  "makespan_seconds",
                                                             "samples_per_second", "estimate_seconds",
                                                             "bottleneck_seconds", "stages"};
  return std::find(kKnown.begin(), kKnown.end(), name) != kKnown.end();
}

double figure(const Figures& values, std::string_view name) {
  const auto row = std::find_if(kTable.begin(), kTable.end(), [&](const FigureRow& one) { return one.name == name; });
  return values.at(static_cast<std::size_t>(row - kTable.begin()));
}

} // namespace stagecraft
