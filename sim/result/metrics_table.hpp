// The one definition of each metric: its name, its unit, what it means, whether less or more is better, and its value
// in a run. The JSON and the CSV of runs, the columns of sweeps' points, objectives and constraints, the page and
// `stagecraft list metrics` are made from these rows. docs/extending.md says how to add one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <vector>

#include "sim/result/run.hpp"

namespace stagecraft {

/// Stands for a figure that a run does not have: null in JSON, empty in CSV.
inline constexpr double kNoFigure = std::numeric_limits<double>::quiet_NaN();

/// A device of whose memory less is left is full for all that is known: twice the median error of predicted peaks.
inline constexpr double kTightMemory = 0.06;

enum class Better { less, more, neither };

/// The form of a metric in the JSON of a run.
enum class MetricShape {
  number,
  count,      ///< a whole number
  per_device, ///< a list that follows `devices`; its largest value where one number is wanted
  length,     ///< the length of a list that is in the JSON instead
  largest,    ///< the largest value of such a list; 0 where the run has none
};

struct Metric {
  std::string_view name; ///< in CSV, and of the column of points
  std::string_view unit; ///< in SI; "": a plain number
  std::string_view help;
  Better better = Better::neither;
  MetricShape shape = MetricShape::number;
  std::string_view json;    ///< its path of keys in JSON, joined by dots; "": the name, a key of every run
  bool by_estimate = false; ///< known from closed forms alone, without a replay
  std::string_view heading; ///< heading of a column for readers, with the unit shown; "": the name
  double scale = 1;         ///< from the SI unit to that of the heading
  int csv = 0;              ///< its place among the metrics in CSV, from 1; 0: not in CSV
  int point = 0;            ///< the same among the columns of points
  int page = 0;             ///< the same among the columns of a comparison's page
  double (*value)(const Run& run) = nullptr;                   ///< of a feasible run, or kNoFigure
  std::vector<double> (*per_device)(const Run& run) = nullptr; ///< instead of `value`, where it is a list

  constexpr std::string_view path() const { return json.empty() ? name : json; }
  /// Whether it is a key of every run's JSON, null where there is no figure.
  constexpr bool is_key() const {
    return shape != MetricShape::length && shape != MetricShape::largest && path().find('.') == std::string_view::npos;
  }
  constexpr std::string_view title() const { return heading.empty() ? name : heading; }
};

template <class Quantity> std::vector<double> values_of(const std::vector<Quantity>& quantities) {
  std::vector<double> values;
  values.reserve(quantities.size());
  for (const Quantity& quantity : quantities) {
    values.push_back(quantity.value);
  }
  return values;
}

/// In the order of JSON. Elsewhere the places give the order, so that a new row can come last there, wherever it stands
/// here.
inline constexpr std::array kMetrics = {
    Metric{.name = "iteration_seconds",
           .unit = "s",
           .help = "the period of the steady state",
           .better = Better::less,
           .by_estimate = true,
           .heading = "iteration [s]",
           .csv = 1,
           .point = 1,
           .page = 1,
           .value = [](const Run& run) { return run.metrics.iteration.value; }},
    Metric{.name = "makespan_seconds",
           .unit = "s",
           .help = "one iteration alone from empty",
           .better = Better::less,
           .by_estimate = true,
           .csv = 2,
           .point = 2,
           .value = [](const Run& run) { return run.metrics.makespan.value; }},
    Metric{.name = "samples_per_second",
           .unit = "1/s",
           .help = "global batch / iteration",
           .better = Better::more,
           .by_estimate = true,
           .heading = "samples/s",
           .csv = 9,
           .point = 3,
           .page = 2,
           .value = [](const Run& run) { return run.samples_per_second; }},
    Metric{.name = "tokens_per_second",
           .unit = "1/s",
           .help = "tokens of the global batch / iteration, of a model that has tokens",
           .better = Better::more,
           .heading = "tokens/s",
           .csv = 37,
           .point = 27,
           .page = 16,
           .value = [](const Run& run) { return run.tokens_per_second > 0 ? run.tokens_per_second : kNoFigure; }},
    Metric{.name = "tokens_per_device_second",
           .unit = "1/s",
           .help = "tokens per second / devices in use",
           .better = Better::more,
           .heading = "tokens/s per device",
           .csv = 38,
           .point = 28,
           .page = 17,
           .value =
               [](const Run& run) {
                 const std::size_t devices = run.metrics.busy.size();
                 return run.tokens_per_second > 0 && devices > 0 ? run.tokens_per_second / static_cast<double>(devices)
                                                                 : kNoFigure;
               }},
    Metric{.name = "mfu",
           .unit = "",
           .help = "model FLOPs utilization as PaLM counts it, of the nominal peak of the devices in use",
           .better = Better::more,
           .heading = "MFU [%]",
           .scale = 100,
           .csv = 39,
           .point = 29,
           .page = 18,
           .value = [](const Run& run) { return run.mfu > 0 ? run.mfu : kNoFigure; }},
    Metric{.name = "hfu",
           .unit = "",
           .help = "the same with what runs forward again",
           .better = Better::neither,
           .heading = "HFU [%]",
           .scale = 100,
           .csv = 40,
           .point = 30,
           .page = 19,
           .value = [](const Run& run) { return run.hfu > 0 ? run.hfu : kNoFigure; }},
    Metric{.name = "speedup",
           .unit = "",
           .help = "over the fastest single device at the same global batch, memory aside",
           .better = Better::more,
           .heading = "speedup",
           .csv = 10,
           .page = 3,
           .value = [](const Run& run) { return run.speedup; }},
    Metric{.name = "bubble_fraction",
           .unit = "",
           .help = "1 - sum of busy / (devices in use x iteration)",
           .better = Better::less,
           .heading = "bubble [%]",
           .scale = 100,
           .csv = 11,
           .point = 4,
           .page = 5,
           .value = [](const Run& run) { return run.metrics.bubble_fraction; }},
    Metric{.name = "load_imbalance",
           .unit = "",
           .help = "largest / mean busy - 1",
           .better = Better::less,
           .csv = 12,
           .point = 5,
           .value = [](const Run& run) { return run.metrics.load_imbalance; }},
    Metric{.name = "utilization",
           .unit = "",
           .help = "busy / iteration",
           .better = Better::more,
           .shape = MetricShape::per_device,
           .heading = "share of the iteration [%]",
           .scale = 100,
           .per_device =
               [](const Run& run) {
                 std::vector<double> shares = values_of(run.metrics.busy);
                 const double whole = run.metrics.iteration.value;
                 std::transform(shares.begin(), shares.end(), shares.begin(),
                                [&](double busy) { return whole > 0 ? busy / whole : 0; });
                 return shares;
               }},
    Metric{.name = "waiting_seconds",
           .unit = "s",
           .help = "iteration - busy",
           .better = Better::less,
           .shape = MetricShape::per_device,
           .csv = 33,
           .per_device = [](const Run& run) { return values_of(run.metrics.waiting); }},
    Metric{.name = "exposed_communication_seconds",
           .unit = "s",
           .help = "waiting for data already sent",
           .better = Better::less,
           .shape = MetricShape::per_device,
           .heading = "[s]",
           .csv = 34,
           .point = 6,
           .per_device = [](const Run& run) { return values_of(run.metrics.exposed); }},
    Metric{.name = "data_stall_seconds",
           .unit = "s",
           .help = "the longest that a device waits for its loader",
           .better = Better::less,
           .csv = 30,
           .point = 7,
           .value = [](const Run& run) { return run.data_stall.value; }},
    Metric{.name = "peak_memory_bytes",
           .unit = "B",
           .help = "the most that it holds at once",
           .better = Better::less,
           .shape = MetricShape::per_device,
           .heading = "peak memory [GiB]",
           .scale = 1 / (1024.0 * 1024.0 * 1024.0),
           .csv = 35,
           .point = 8,
           .page = 6,
           .per_device = [](const Run& run) { return values_of(run.metrics.peak_memory); }},
    Metric{.name = "energy_joules",
           .unit = "J",
           .help = "devices in use, their hosts and links, per iteration",
           .better = Better::less,
           .csv = 18,
           .point = 9,
           .value = [](const Run& run) { return run.metrics.energy.total().value; }},
    Metric{.name = "devices_idle_joules",
           .unit = "J",
           .help = "of the energy: devices in use, all the time",
           .better = Better::less,
           .json = "energy.components.devices_idle.joules",
           .csv = 20,
           .value = [](const Run& run) { return run.metrics.energy.devices_idle.value; }},
    Metric{.name = "devices_waiting_joules",
           .unit = "J",
           .help = "of the energy: devices that wait, beyond idle",
           .better = Better::less,
           .json = "energy.components.devices_waiting.joules",
           .csv = 21,
           .value = [](const Run& run) { return run.metrics.energy.devices_waiting.value; }},
    Metric{.name = "devices_dynamic_joules",
           .unit = "J",
           .help = "of the energy: devices that compute, beyond idle",
           .better = Better::less,
           .json = "energy.components.devices_dynamic.joules",
           .csv = 22,
           .value = [](const Run& run) { return run.metrics.energy.devices_dynamic.value; }},
    Metric{.name = "hosts_idle_joules",
           .unit = "J",
           .help = "of the energy: hosts, all the time",
           .better = Better::less,
           .json = "energy.components.hosts_idle.joules",
           .csv = 23,
           .value = [](const Run& run) { return run.metrics.energy.hosts_idle.value; }},
    Metric{.name = "loader_cores_busy_joules",
           .unit = "J",
           .help = "of the energy: cores that decode, beyond idle",
           .better = Better::less,
           .json = "energy.components.loader_cores_busy.joules",
           .csv = 24,
           .value = [](const Run& run) { return run.metrics.energy.loaders_busy.value; }},
    Metric{.name = "loader_cores_waiting_joules",
           .unit = "J",
           .help = "of the energy: cores of loaders that spin",
           .better = Better::less,
           .json = "energy.components.loader_cores_waiting.joules",
           .csv = 25,
           .value = [](const Run& run) { return run.metrics.energy.loaders_waiting.value; }},
    Metric{.name = "driver_cores_waiting_joules",
           .unit = "J",
           .help = "of the energy: cores that drive devices and spin",
           .better = Better::less,
           .json = "energy.components.driver_cores_waiting.joules",
           .csv = 26,
           .value = [](const Run& run) { return run.metrics.energy.drivers_waiting.value; }},
    Metric{.name = "links_idle_joules",
           .unit = "J",
           .help = "of the energy: links, all the time",
           .better = Better::less,
           .json = "energy.components.links_idle.joules",
           .value = [](const Run& run) { return run.metrics.energy.links_idle.value; }},
    Metric{.name = "links_dynamic_joules",
           .unit = "J",
           .help = "of the energy: links that carry bytes, beyond idle",
           .better = Better::less,
           .json = "energy.components.links_dynamic.joules",
           .value = [](const Run& run) { return run.metrics.energy.links_dynamic.value; }},
    Metric{.name = "mean_power_watts",
           .unit = "W",
           .help = "energy / iteration",
           .better = Better::less,
           .csv = 29,
           .point = 11,
           .value =
               [](const Run& run) {
                 const Metrics& metrics = run.metrics;
                 return metrics.iteration.value > 0 ? (metrics.energy.total() / metrics.iteration).value : 0.0;
               }},
    Metric{.name = "joules_per_sample",
           .unit = "J",
           .help = "energy / global batch",
           .better = Better::less,
           .heading = "J per sample",
           .csv = 19,
           .point = 10,
           .page = 7,
           .value = [](const Run& run) { return run.energy_per_sample.value; }},
    Metric{.name = "cost_usd",
           .unit = "USD",
           .help = "devices in use and their hosts, per iteration",
           .better = Better::less,
           .csv = 27,
           .point = 12,
           .value = [](const Run& run) { return run.metrics.cost.value; }},
    Metric{.name = "usd_per_million_samples",
           .unit = "USD",
           .help = "cost / global batch x 10^6",
           .better = Better::less,
           .heading = "USD per million samples",
           .csv = 28,
           .point = 13,
           .page = 8,
           .value = [](const Run& run) { return run.cost_per_million_samples.value; }},
    Metric{.name = "assumed_cost_share",
           .unit = "",
           .help = "of the cost: the part that rests on assumed prices",
           .better = Better::less,
           .heading = "of assumed prices [%]",
           .scale = 100,
           .csv = 36,
           .point = 26,
           .value =
               [](const Run& run) {
                 const Metrics& metrics = run.metrics;
                 return metrics.cost.value > 0 ? (metrics.assumed_cost / metrics.cost) : 0.0;
               }},
    Metric{.name = "estimate_seconds",
           .unit = "s",
           .help = "the planner's closed form for the iteration",
           .better = Better::less,
           .by_estimate = true,
           .csv = 13,
           .point = 14,
           .value = [](const Run& run) { return run.estimate.value; }},
    Metric{.name = "bottleneck_seconds",
           .unit = "s",
           .help = "largest stage or boundary per micro-batch",
           .better = Better::less,
           .by_estimate = true,
           .csv = 14,
           .point = 15,
           .value = [](const Run& run) { return run.bottleneck.value; }},
    Metric{.name = "optimal_bottleneck_seconds",
           .unit = "s",
           .help = "the least of any pipeline of one stage per device, where proven",
           .csv = 15,
           .value = [](const Run& run) { return run.optimal_bottleneck ? run.optimal_bottleneck->value : kNoFigure; }},
    Metric{.name = "lower_bound_seconds",
           .unit = "s",
           .help = "no plan that the comparison allows is faster",
           .csv = 16,
           .value = [](const Run& run) { return run.lower_bound.value; }},
    Metric{.name = "over_bound",
           .unit = "",
           .help = "iteration / lower bound - 1",
           .better = Better::less,
           .heading = "over bound [%]",
           .scale = 100,
           .csv = 17,
           .page = 4,
           .value = [](const Run& run) { return run.over_bound(); }},
    Metric{.name = "devices",
           .unit = "",
           .help = "in use",
           .shape = MetricShape::length,
           .heading = "devices",
           .point = 16,
           .value =
               [](const Run& run) {
                 const std::size_t devices = run.metrics.busy.size(); // a brief run has no names
                 return devices > 0 ? static_cast<double>(devices) : kNoFigure;
               }},
    Metric{.name = "stages",
           .unit = "",
           .help = "of the plan",
           .shape = MetricShape::length,
           .by_estimate = true,
           .point = 17,
           .value = [](const Run& run) { return static_cast<double>(run.stages.size()); }},
    Metric{.name = "tasks",
           .unit = "",
           .help = "executed by the engine, transfers included",
           .shape = MetricShape::count,
           .csv = 32,
           .point = 18,
           .value = [](const Run& run) { return static_cast<double>(run.metrics.tasks); }},
    Metric{.name = "folded_replicas",
           .unit = "",
           .help = "data-parallel replicas that one stands for, at most",
           .shape = MetricShape::count,
           .csv = 31,
           .value = [](const Run& run) { return static_cast<double>(run.folded_replicas); }},
    Metric{.name = "staleness_steps",
           .unit = "",
           .help = "optimiser steps by which gradients come late, of the stage where they are latest",
           .better = Better::less,
           .shape = MetricShape::largest,
           .json = "staleness",
           .point = 19,
           .value =
               [](const Run& run) {
                 return run.staleness.empty() ? 0 : *std::max_element(run.staleness.begin(), run.staleness.end());
               }},
    Metric{.name = "expected_low_seconds",
           .unit = "s",
           .help = "where nine of ten measurements of the iteration would lie, by measured runs like it: the lower end",
           .better = Better::less,
           .json = "expected.low_seconds",
           .heading = "measured from [s]",
           .csv = 41,
           .point = 31,
           .value = [](const Run& run) { return run.expected ? run.expected->low.value : kNoFigure; }},
    Metric{.name = "expected_high_seconds",
           .unit = "s",
           .help = "the same, the upper end",
           .better = Better::less,
           .json = "expected.high_seconds",
           .heading = "measured to [s]",
           .csv = 42,
           .point = 32,
           .value = [](const Run& run) { return run.expected ? run.expected->high.value : kNoFigure; }},
    Metric{.name = "perturbed_p5_seconds",
           .unit = "s",
           .help = "the iteration, 5 % quantile over disturbed worlds, where the study perturbs",
           .better = Better::less,
           .json = "perturbed.iteration_seconds.p5",
           .heading = "perturbed 5 % [s]",
           .csv = 3,
           .point = 20,
           .page = 13,
           .value = [](const Run& run) { return run.perturbed ? run.perturbed->low.value : kNoFigure; }},
    Metric{.name = "perturbed_median_seconds",
           .unit = "s",
           .help = "the same, median",
           .better = Better::less,
           .json = "perturbed.iteration_seconds.median",
           .heading = "perturbed median [s]",
           .csv = 4,
           .point = 21,
           .page = 14,
           .value = [](const Run& run) { return run.perturbed ? run.perturbed->median.value : kNoFigure; }},
    Metric{.name = "perturbed_p95_seconds",
           .unit = "s",
           .help = "the same, 95 % quantile",
           .better = Better::less,
           .json = "perturbed.iteration_seconds.p95",
           .heading = "perturbed 95 % [s]",
           .csv = 5,
           .point = 22,
           .page = 15,
           .value = [](const Run& run) { return run.perturbed ? run.perturbed->high.value : kNoFigure; }},
    Metric{.name = "confidence_p5_seconds",
           .unit = "s",
           .help = "the iteration, 5 % quantile over the cost model's errors, where the study draws them",
           .better = Better::less,
           .json = "confidence.iteration_seconds.p5",
           .heading = "confidence 5 % [s]",
           .csv = 6,
           .point = 23,
           .page = 9,
           .value = [](const Run& run) { return run.confidence ? run.confidence->iteration.low.value : kNoFigure; }},
    Metric{.name = "confidence_median_seconds",
           .unit = "s",
           .help = "the same, median",
           .better = Better::less,
           .json = "confidence.iteration_seconds.median",
           .heading = "confidence median [s]",
           .point = 24,
           .page = 10,
           .value = [](const Run& run) { return run.confidence ? run.confidence->iteration.median.value : kNoFigure; }},
    Metric{.name = "confidence_p95_seconds",
           .unit = "s",
           .help = "the same, 95 % quantile",
           .better = Better::less,
           .json = "confidence.iteration_seconds.p95",
           .heading = "confidence 95 % [s]",
           .csv = 7,
           .point = 25,
           .page = 11,
           .value = [](const Run& run) { return run.confidence ? run.confidence->iteration.high.value : kNoFigure; }},
    Metric{.name = "confidence_best",
           .unit = "",
           .help = "share of those draws in which no other run is faster",
           .better = Better::more,
           .json = "confidence.best",
           .heading = "best in [%]",
           .scale = 100,
           .csv = 8,
           .page = 12,
           .value = [](const Run& run) { return run.confidence ? run.confidence->best : kNoFigure; }},
};

/// The row with this name; a name without a row does not compile.
consteval const Metric& metric(std::string_view name) {
  for (const Metric& row : kMetrics) {
    if (row.name == name) {
      return row;
    }
  }
  throw "no metric of this name";
}

/// The rows that have a place, in the order of places. Places other than 1, 2, 3, … do not compile.
template <int Metric::*place> consteval auto metrics_by() {
  constexpr auto kRows =
      std::count_if(kMetrics.begin(), kMetrics.end(), [](const Metric& row) { return row.*place > 0; });
  std::array<Metric, static_cast<std::size_t>(kRows)> rows{};
  for (const Metric& row : kMetrics) {
    if (row.*place > 0) {
      Metric& there = rows.at(static_cast<std::size_t>(row.*place - 1));
      there = there.name.empty() ? row : throw "two metrics at one place";
    }
  }
  return rows;
}

/// The metric of a feasible run as one number: the largest value where it is a list.
inline double value_of(const Metric& metric, const Run& run) {
  if (metric.per_device == nullptr) {
    return metric.value(run);
  }
  const std::vector<double> values = metric.per_device(run);
  return values.empty() ? kNoFigure : *std::max_element(values.begin(), values.end());
}

} // namespace stagecraft
