// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/base/format/csv.hpp"
#include "sim/base/named_table.hpp"
#include "sim/result/metrics_table.hpp"

namespace stagecraft {
namespace {

// A column of text.
struct TextColumn {
  const char* name;
  bool of_feasible; ///< empty for other runs
  std::string (*text)(const Run& run);
  std::string_view after = {}; ///< a metric; "": before all of them
};

constexpr std::array kTexts = {
    TextColumn{"strategy", false, [](const Run& run) { return run.strategy; }},
    TextColumn{"schedule", false, [](const Run& run) { return run.schedule; }},
    TextColumn{"order", true, [](const Run& run) { return run.order; }},
    TextColumn{"engine", false, [](const Run& run) { return run.engine; }},
    TextColumn{"micro_batches", false, [](const Run& run) { return std::to_string(run.micro_batches); }},
    TextColumn{"recompute", false, [](const Run& run) { return to_text(run.recompute); }},
    TextColumn{"feasible", false, [](const Run& run) { return std::string(run.feasible ? "true" : "false"); }},
    TextColumn{"why_not", false, [](const Run& run) { return run.why_not; }},
    TextColumn{"would_fit", false, [](const Run& run) { return run.would_fit; }},
    TextColumn{"note", true, [](const Run& run) { return run.note; }, metric("folded_replicas").name},
    TextColumn{"prices", true, [](const Run& run) { return in_words(run.prices); }, metric("assumed_cost_share").name},
    TextColumn{"cost_basis", true, [](const Run& run) { return in_words(whole_of(run.cost_basis)); },
               metric("assumed_cost_share").name},
    TextColumn{"devices", true, [](const Run& run) { return join(run.devices, ";"); }, metric("tasks").name},
};

std::string csv_figure(const Metric& metric, const Run& run) {
  if (metric.per_device != nullptr) {
    std::string list; // empty beyond 64 devices
    for (const double value : run.lists_devices() ? metric.per_device(run) : std::vector<double>{}) {
      list += (list.empty() ? "" : ";") + csv_cell(value);
    }
    return list;
  }
  const double value = metric.value(run);
  return std::isnan(value)                    ? ""
         : metric.shape == MetricShape::count ? std::to_string(static_cast<long>(value))
                                              : csv_cell(value);
}

constexpr auto kCsvMetrics = metrics_by<&Metric::csv>();

// The cells of a run's line, or, without a run, the names of the columns.
std::vector<std::string> cells_of(const Run* run) {
  std::vector<std::string> cells;
  const auto add_texts = [&](std::string_view after) {
    for (const TextColumn& column : kTexts) {
      if (column.after == after) {
        const bool shown = run != nullptr && (run->feasible || !column.of_feasible);
        cells.push_back(run == nullptr ? column.name : shown ? csv_cell(column.text(*run)) : "");
      }
    }
  };
  add_texts({});
  for (const Metric& metric : kCsvMetrics) {
    cells.push_back(run == nullptr ? std::string(metric.name) : run->feasible ? csv_figure(metric, *run) : "");
    add_texts(metric.name);
  }
  return cells;
}

} // namespace

std::string to_text(const RunRecompute& recompute) {
  if (recompute.what == "none") {
    return recompute.what;
  }
  if (recompute.blocks > 0) {
    return recompute.blocks == 1 ? "by blocks" : "by blocks, " + std::to_string(recompute.blocks) + " at a time";
  }
  return recompute.what + (recompute.rule.early ? "" : ", lazy") +
         (recompute.rule.skip_after_own_forward ? ", not right after its forward" : "") +
         (recompute.rule.except_last_micro_batch ? ", not of the last micro-batch" : "");
}

std::string to_csv(const Comparison& comparison) {
  std::string text = join(cells_of(nullptr), ",") + "\n";
  for (const Run& run : comparison.runs) {
    text += join(cells_of(&run), ",") + "\n";
  }
  return text;
}

} // namespace stagecraft
