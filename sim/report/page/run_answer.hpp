// What a run means for a reader, in words and in figures of the answer card.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "sim/report/page/run_values.hpp"

namespace stagecraft {

/// "a pipeline of 8 stages", "2 copies of a pipeline of 4 stages, each layer split over 8 GPUs".
std::string plan_in_words(const nlohmann::json& run, const std::string& device);

/// What this document calls a device: "GPU", or "device" where it does not say that they are.
std::string device_word(const nlohmann::json& document);
/// "15 % from the proven limit", "3.9 times the proven limit", by RunValues' over_bound.
std::string distance_in_words(double over_bound);
/// "8 GPUs", "one GPU".
std::string count_of_devices(std::size_t count, const std::string& device);

/// Time, rate, utilization, cost, memory and power of a feasible run, as far as they are known.
std::vector<AnswerFigure> figures_of_run(const nlohmann::json& document, const nlohmann::json& run,
                                         const RunValues& values);

/// The range in which the run's time lies; nothing where the document has none.
struct TimeRange {
  double low = 0, high = 0; // s
  std::string words;        ///< whose range it is
};
std::optional<TimeRange> range_of_run(const nlohmann::json& run, const RunValues& values);

/// What the figures rest on: model, batch, number format, machine, kernels, prices, program. `prices` is a sentence.
std::vector<AnswerBasis> basis_of_run(const nlohmann::json& document, const nlohmann::json& run,
                                      const std::string& prices);

/// The sentence on the prices of runs; "" where nothing costs money.
std::string price_remark_of(const nlohmann::json& runs);

} // namespace stagecraft
