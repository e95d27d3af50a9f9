// A run in a document, as the figures that charts and tables show.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <algorithm>
#include <array>
#include <string>

#include "sim/report/page/page.hpp"
#include "sim/result/metrics_table.hpp"

namespace stagecraft {

/// Pages show memory in GiB, as messages do.
inline constexpr double kGibibyte = 1 / metric("peak_memory_bytes").scale; // B

/// A run's values; NaN where the document has no number.
struct RunValues {
  std::string strategy, schedule, order;
  std::string recompute; ///< in words; "" where all runs beside it recompute the same
  int micro_batches = 1;
  bool feasible = false;
  bool is_exact = true;                          ///< not asynchronous
  std::array<double, kMetrics.size()> figures{}; ///< of each metric, in SI; NaN where the document has no number
  std::string remarks;
  std::string plan; ///< in degrees; "" where the document does not say

  /// Whether two runs do the same: one rank of a pipeline has nothing to put in order, whatever its schedule is called.
  bool same_plan(const RunValues& other) const {
    return plan == other.plan && plan.find("pipeline 1,") != std::string::npos;
  }
  /// A figure of the document, in SI and as its heading says.
  double of(const Metric& metric) const {
    const auto same = [&](const Metric& one) { return one.name == metric.name; };
    return figures.at(
        static_cast<std::size_t>(std::find_if(kMetrics.begin(), kMetrics.end(), same) - kMetrics.begin()));
  }
  double shown(const Metric& metric) const { return metric.scale * of(metric); }
  double iteration() const { return of(metric("iteration_seconds")); }

  std::string label() const {
    return strategy + ", " + schedule + ", M " + std::to_string(micro_batches) +
           (recompute.empty() || recompute == "none" ? "" : ", recompute " + recompute);
  }
};

RunValues run_values(const nlohmann::json& run);

/// What a run recomputes, and when, in words.
std::string recompute_of(const nlohmann::json& run);

/// Stages, and for each device its busy time, waiting time and peak memory.
PageSection devices_section(const nlohmann::json& run, const std::string& title);

/// Shows the value of the key `explanation`.
PageSection explanation_section(const nlohmann::json& explanation, const std::string& title);

} // namespace stagecraft
