// How many samples a benchmark's training takes until it has converged, and how often it is evaluated on the way.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>

#include "sim/base/error.hpp"
#include "sim/validate/truth/rows/truth_metrics.hpp"

namespace stagecraft {

/// A whole training, in its parts. No simulator can tell the first.
struct TrainingLength {
  double samples = 0;     ///< trained on, in the mean over many trainings
  double evaluations = 0; ///< in the mean
  double evaluated = 0;   ///< samples of one evaluation
  double batch = 1;       ///< samples of an iteration
  std::string assumed;    ///< whence the samples are known, as a clause
};

/// The length of a row's training, where its benchmark publishes at which batches it converges after how many samples;
/// linear between two such batches, as MLPerf's own checker takes it. Infeasible where nobody says.
std::variant<TrainingLength, Infeasible> training_length(const TruthRow& row);

/// Seconds of such a training: its iterations, and of each evaluation the forward parts of as many iterations as its
/// samples fill.
double seconds_to_train(const TrainingLength& length, const PredictedRun& run);

} // namespace stagecraft
