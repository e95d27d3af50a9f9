// What a study predicts for rows of measured figures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/validate/truth/rows/truth_metrics.hpp"
#include "sim/validate/truth/validate_options.hpp"

namespace stagecraft {

class InputFiles;

using TruthPrediction = std::variant<PredictedRun, Infeasible>;

/// Runs a study of one plan, given as YAML, from end to end. Infeasible with the reason where it cannot be read or does
/// not fit. `files` keeps what studies read.
TruthPrediction predict_study(const std::string& study, const ValidateOptions& options, InputFiles& files);

/// The same of many studies, in forked children where there are several workers.
std::vector<TruthPrediction> predict_studies(const std::vector<std::string>& studies, const ValidateOptions& options);

} // namespace stagecraft
