// What a study predicts for rows of measured figures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/validate/truth/truth_metrics.hpp"

namespace stagecraft {

class InputFiles;

using TruthPrediction = std::variant<PredictedRun, Infeasible>;

/// Runs a study of one plan, given as YAML, from end to end. Infeasible with the reason where it cannot be read or does
/// not fit. `files` keeps what studies read.
TruthPrediction predict_study(const std::string& study, const std::filesystem::path& shipped, InputFiles& files);

/// The same of many studies, in forked children where there are several workers; `progress` hears how many are done.
std::vector<TruthPrediction> predict_studies(const std::vector<std::string>& studies,
                                             const std::filesystem::path& shipped, int workers,
                                             const std::function<void(std::size_t done, std::size_t all)>& progress);

} // namespace stagecraft
