// Trivial predictions of the same rows, which a model must beat.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/report/validation.hpp"
#include "sim/validate/truth/rows/truth_metrics.hpp"

namespace stagecraft {

/// A row of a run's speed that was predicted, with the run.
struct SpeedRow {
  const TruthRow* row = nullptr;
  const PredictedRun* run = nullptr;
};

/// Predictions of all rows, by the name of the baseline:
/// "constant utilisation": the FLOPs of the model at one rate per device and precision, the median of the rows of other
/// models in the same table; "constant utilisation and ideal bubble": the same for the time without the bubble of a
/// pipeline of equal stages; "roofline": at the nominal peak. Rows that have no other model to learn from are left out
/// of the first two.
std::map<std::string, std::vector<ValidationRow>> baselines_of(const std::vector<SpeedRow>& rows);

} // namespace stagecraft
