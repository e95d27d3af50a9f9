// Intervals of predictions, from how far off those of other models of the same family were.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/study/error_families.hpp"

namespace stagecraft {

/// A prediction whose measurement is known.
struct ScoredPrediction {
  std::string model;                 ///< whose other rows say nothing of this one's interval
  std::vector<std::string> families; ///< those that it belongs to, from the narrowest to the widest
  double measured = 0, predicted = 0;
  std::string table = {}; ///< where it was measured: rows of one table share a machine and whoever ran it
};

/// A range of a figure, and the models that it rests on.
struct PredictionInterval {
  double low = 0, high = 0;
  std::string family; ///< the narrowest with three other models, whose errors scale it
  int models = 0;     ///< of the widest, without the row's own; 0: they are too few, and the range is unbounded
};

/// Of each prediction, the interval that holds 90 % of measurements of models not seen: split conformal prediction with
/// a model as the unit that is exchangeable (Dunn, Wasserman, Ramdas 2023, "Distribution-free prediction sets for
/// two-layer hierarchical models"; each model weighs the same). The score is |log(measured / predicted)| over the
/// spread expected of the case (Lei et al. 2018, "Distribution-free predictive inference for regression", 5.2): the
/// mean of the median scores of its family's models, and of the wider family's, which counts as two models. The spread
/// knows neither the model predicted nor the one whose score it divides. Below a widest family of fewer than twenty
/// models scores are not divided. The widest family needs nine other models: with fewer, no finite interval holds 90
/// %.
std::vector<PredictionInterval> intervals_of(const std::vector<ScoredPrediction>& predictions);

/// Of each family with three models and more, and of the widest, how far off its predictions are: what intervals_of()
/// would say of a model that is none of them. A family whose rows are all of one table is left out: it says how far off
/// another model on that machine is, and the file is for machines that no table has.
std::vector<ErrorFamily> error_families_of(const std::vector<ScoredPrediction>& predictions);

inline constexpr double kIntervalCoverage = 0.9;
inline constexpr int kLeastModels = 9; ///< 1 / (1 - 0.9) - 1

} // namespace stagecraft
