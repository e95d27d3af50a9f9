// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <functional>

#include "sim/base/csv.hpp"
#include "sim/base/named_table.hpp"
#include "sim/result/run.hpp"

namespace stagecraft {
namespace {

template <class Q> std::string list(const std::vector<Q>& quantities) {
  std::string text;
  for (const Q& quantity : quantities) {
    text += (text.empty() ? "" : ";") + csv_cell(quantity.value);
  }
  return text;
}

struct CsvColumn {
  const char* name;
  bool of_feasible; ///< empty for other runs
  std::function<std::string(const Run&)> text;
};

const std::vector<CsvColumn>& columns() {
  static const std::vector<CsvColumn> kColumns = {
      {"strategy", false, [](const Run& r) { return r.strategy; }},
      {"schedule", false, [](const Run& r) { return r.schedule; }},
      {"order", true, [](const Run& r) { return r.order; }},
      {"engine", false, [](const Run& r) { return r.engine; }},
      {"micro_batches", false, [](const Run& r) { return std::to_string(r.micro_batches); }},
      {"recompute", false, [](const Run& r) { return csv_cell(to_text(r.recompute)); }},
      {"feasible", false, [](const Run& r) { return std::string(r.feasible ? "true" : "false"); }},
      {"why_not", false, [](const Run& r) { return csv_cell(r.why_not); }},
      {"would_fit", false, [](const Run& r) { return csv_cell(r.would_fit); }},
      {"iteration_seconds", true, [](const Run& r) { return csv_cell(r.metrics.iteration.value); }},
      {"makespan_seconds", true, [](const Run& r) { return csv_cell(r.metrics.makespan.value); }},
      {"perturbed_p5_seconds", true, [](const Run& r) { return r.perturbed ? csv_cell(r.perturbed->low.value) : ""; }},
      {"perturbed_median_seconds", true,
       [](const Run& r) { return r.perturbed ? csv_cell(r.perturbed->median.value) : ""; }},
      {"perturbed_p95_seconds", true,
       [](const Run& r) { return r.perturbed ? csv_cell(r.perturbed->high.value) : ""; }},
      {"confidence_p5_seconds", true,
       [](const Run& r) { return r.confidence ? csv_cell(r.confidence->iteration.low.value) : ""; }},
      {"confidence_p95_seconds", true,
       [](const Run& r) { return r.confidence ? csv_cell(r.confidence->iteration.high.value) : ""; }},
      {"confidence_best", true, [](const Run& r) { return r.confidence ? csv_cell(r.confidence->best) : ""; }},
      {"samples_per_second", true, [](const Run& r) { return csv_cell(r.samples_per_second); }},
      {"speedup", true, [](const Run& r) { return csv_cell(r.speedup); }},
      {"bubble_fraction", true, [](const Run& r) { return csv_cell(r.metrics.bubble_fraction); }},
      {"load_imbalance", true, [](const Run& r) { return csv_cell(r.metrics.load_imbalance); }},
      {"estimate_seconds", true, [](const Run& r) { return csv_cell(r.estimate.value); }},
      {"bottleneck_seconds", true, [](const Run& r) { return csv_cell(r.bottleneck.value); }},
      {"optimal_bottleneck_seconds", true,
       [](const Run& r) { return r.optimal_bottleneck ? csv_cell(r.optimal_bottleneck->value) : std::string(); }},
      {"lower_bound_seconds", true, [](const Run& r) { return csv_cell(r.lower_bound.value); }},
      {"over_bound", true, [](const Run& r) { return csv_cell(r.over_bound()); }},
      {"energy_joules", true, [](const Run& r) { return csv_cell(r.metrics.energy.total().value); }},
      {"joules_per_sample", true, [](const Run& r) { return csv_cell(r.energy_per_sample.value); }},
      {"devices_idle_joules", true, [](const Run& r) { return csv_cell(r.metrics.energy.devices_idle.value); }},
      {"devices_waiting_joules", true, [](const Run& r) { return csv_cell(r.metrics.energy.devices_waiting.value); }},
      {"devices_dynamic_joules", true, [](const Run& r) { return csv_cell(r.metrics.energy.devices_dynamic.value); }},
      {"hosts_idle_joules", true, [](const Run& r) { return csv_cell(r.metrics.energy.hosts_idle.value); }},
      {"loader_cores_busy_joules", true, [](const Run& r) { return csv_cell(r.metrics.energy.loaders_busy.value); }},
      {"loader_cores_waiting_joules", true,
       [](const Run& r) { return csv_cell(r.metrics.energy.loaders_waiting.value); }},
      {"driver_cores_waiting_joules", true,
       [](const Run& r) { return csv_cell(r.metrics.energy.drivers_waiting.value); }},
      {"cost_usd", true, [](const Run& r) { return csv_cell(r.metrics.cost.value); }},
      {"usd_per_million_samples", true, [](const Run& r) { return csv_cell(r.cost_per_million_samples.value); }},
      {"mean_power_watts", true,
       [](const Run& r) {
         return csv_cell(r.metrics.iteration.value > 0 ? (r.metrics.energy.total() / r.metrics.iteration).value : 0.0);
       }},
      {"data_stall_seconds", true, [](const Run& r) { return csv_cell(r.data_stall.value); }},
      {"folded_replicas", true, [](const Run& r) { return std::to_string(r.folded_replicas); }},
      {"note", true, [](const Run& r) { return csv_cell(r.note); }},
      {"tasks", true, [](const Run& r) { return std::to_string(r.metrics.tasks); }},
      {"devices", true, [](const Run& r) { return csv_cell(join(r.devices, ";")); }},
      {"waiting_seconds", true, [](const Run& r) { return list(r.metrics.waiting); }},
      {"exposed_communication_seconds", true, [](const Run& r) { return list(r.metrics.exposed); }},
      {"peak_memory_bytes", true, [](const Run& r) { return list(r.metrics.peak_memory); }},
  };
  return kColumns;
}

} // namespace

std::string to_text(const RunRecompute& recompute) {
  if (recompute.what == "none") {
    return recompute.what;
  }
  return recompute.what + (recompute.rule.early ? "" : ", lazy") +
         (recompute.rule.skip_after_own_forward ? ", not right after its forward" : "") +
         (recompute.rule.except_last_micro_batch ? ", not of the last micro-batch" : "");
}

std::string to_csv(const Comparison& comparison) {
  std::string text;
  for (const CsvColumn& column : columns()) {
    text += (text.empty() ? "" : ",") + std::string(column.name);
  }
  text += "\n";
  for (const Run& run : comparison.runs) {
    std::string line;
    for (const CsvColumn& column : columns()) {
      line += (line.empty() ? "" : ",") + (column.of_feasible && !run.feasible ? "" : column.text(run));
    }
    text += line + "\n";
  }
  return text;
}

} // namespace stagecraft
