// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/truth/intervals.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "sim/base/statistics.hpp"

namespace stagecraft {
namespace {

// Of a family, the scores of each model's rows.
using ScoresByModel = std::map<std::string, std::vector<double>>;

// The score that a row of one more model passes with a probability of 10 % at most: each model, the new one too, weighs
// the same, and the new one's own score might be anything.
double largest_likely(const ScoresByModel& scores, const std::string& without) {
  std::vector<std::pair<double, double>> weighted;
  const double models = static_cast<double>(scores.size()) - (scores.count(without) > 0 ? 1 : 0);
  for (const auto& [model, of_model] : scores) {
    if (model != without) {
      for (const double score : of_model) {
        weighted.emplace_back(score, 1 / (models + 1) / static_cast<double>(of_model.size()));
      }
    }
  }
  std::sort(weighted.begin(), weighted.end());
  constexpr double kRounding = 1e-9;
  double mass = 0;
  for (const auto& [score, weight] : weighted) {
    mass += weight;
    if (mass >= kIntervalCoverage - kRounding) {
      return score;
    }
  }
  return std::numeric_limits<double>::infinity();
}

std::map<std::string, ScoresByModel> scores_of(const std::vector<ScoredPrediction>& predictions) {
  std::map<std::string, ScoresByModel> families;
  for (const ScoredPrediction& one : predictions) {
    for (const std::string& family : one.families) {
      families[family][one.model].push_back(std::abs(std::log(one.measured / one.predicted)));
    }
  }
  return families;
}

} // namespace

std::vector<ErrorFamily> error_families_of(const std::vector<ScoredPrediction>& predictions) {
  std::map<std::string, std::vector<double>> errors;
  for (const ScoredPrediction& one : predictions) {
    for (const std::string& family : one.families) {
      errors[family].push_back(std::abs(one.predicted / one.measured - 1));
    }
  }
  std::vector<ErrorFamily> families;
  for (const auto& [name, scores] : scores_of(predictions)) {
    if (static_cast<int>(scores.size()) >= kLeastModels) {
      families.push_back({name, static_cast<int>(scores.size()), static_cast<int>(errors[name].size()),
                          std::exp(largest_likely(scores, "")), quantile(errors[name], 0.5)});
    }
  }
  return families;
}

std::vector<PredictionInterval> intervals_of(const std::vector<ScoredPrediction>& predictions) {
  const std::map<std::string, ScoresByModel> families = scores_of(predictions);
  std::map<std::pair<std::string, std::string>, double> known; // by family and the model left out
  std::vector<PredictionInterval> intervals;
  for (const ScoredPrediction& one : predictions) {
    PredictionInterval interval{.low = 0, .high = std::numeric_limits<double>::infinity()};
    for (const std::string& family : one.families) {
      const ScoresByModel& scores = families.at(family);
      const int others = static_cast<int>(scores.size()) - 1; // its own is among them
      if (others < kLeastModels) {
        continue;
      }
      const auto [place, is_new] = known.try_emplace({family, one.model}, 0.0);
      if (is_new) {
        place->second = largest_likely(scores, one.model);
      }
      interval = {one.predicted * std::exp(-place->second), one.predicted * std::exp(place->second), family, others};
      break;
    }
    intervals.push_back(std::move(interval));
  }
  return intervals;
}

} // namespace stagecraft
