// A run of a document, by the figures that charts and tables show.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <string>

#include "sim/report/page/page.hpp"

namespace stagecraft {

/// Pages show memory in GiB, as messages do.
inline constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0; // B

/// Iteration times that a run may take, s; NaN where not known.
struct RunInterval {
  double low = Mark::kNone, median = Mark::kNone, high = Mark::kNone; ///< 5, 50 and 95 %
};

/// NaN where the document has no number.
struct RunValues {
  std::string strategy, schedule, order;
  std::string recompute; ///< in words, where other runs beside it recompute something else
  int micro_batches = 1;
  bool feasible = false;
  double iteration = Mark::kNone; ///< s
  RunInterval confidence;         ///< what the cost model's errors leave open
  double best = Mark::kNone;      ///< in what share of these errors no other run is faster
  RunInterval perturbed;          ///< in worlds that the study disturbs
  double samples_per_second = Mark::kNone, speedup = Mark::kNone, over_bound = Mark::kNone, bubble = Mark::kNone;
  double peak_gibibytes = Mark::kNone, joules_per_sample = Mark::kNone, dollars_per_million = Mark::kNone;
  double estimate = Mark::kNone, devices = Mark::kNone;
  std::string remarks;

  std::string label() const {
    return strategy + ", " + schedule + ", M " + std::to_string(micro_batches) +
           (recompute.empty() || recompute == "none" ? "" : ", recompute " + recompute);
  }
};

RunValues run_values(const nlohmann::json& run);

/// What a run recomputes, and when, in words.
std::string recompute_of(const nlohmann::json& run);

/// Busy and waiting time and peak memory of each device, and the stages.
PageSection devices_section(const nlohmann::json& run, const std::string& title);

/// The value of a key `explanation`.
PageSection explanation_section(const nlohmann::json& explanation, const std::string& title);

} // namespace stagecraft
