// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/truth/intervals.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "sim/base/statistics.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kTold = 20;     // models of all families below which these are not told apart
constexpr std::size_t kNamed = 3;     // models whose errors tell how far off others of their family are
constexpr double kWideWeight = 2;     // of the wider family, in models
constexpr double kLeastSpread = 1e-6; // predictions without an error would have no width

double score_of(const ScoredPrediction& one) { return std::abs(std::log(one.measured / one.predicted)); }

// What is known of one family: the median score of each model.
using MedianByModel = std::map<std::string, double>;

// Scores of all models below one widest family, and how they differ between its families.
class Pool {
public:
  explicit Pool(const std::vector<const ScoredPrediction*>& members) {
    std::map<std::string, std::map<std::string, std::vector<double>>> scores;
    for (const ScoredPrediction* one : members) {
      rows_of_[one->model].push_back(one);
      for (const std::string& family : one->families) {
        scores[family][one->model].push_back(score_of(*one));
      }
    }
    for (const auto& [family, of_models] : scores) {
      for (const auto& [model, of_model] : of_models) {
        medians_[family][model] = quantile(of_model, 0.5);
      }
    }
  }

  std::size_t models() const { return rows_of_.size(); }
  std::size_t models_of(const std::string& family) const { return medians_.at(family).size(); }
  bool tells(std::size_t models_of_family) const { return models() >= kTold && models_of_family >= kNamed; }

  // How far off predictions of a family are expected to be, without what these models say: the mean of its models'
  // median scores and of the next wider family's, which counts as some models.
  double spread(const std::vector<std::string>& families, const std::set<std::string>& without) const {
    if (models() < kTold) {
      return 1;
    }
    double spread = 0;
    for (auto family = families.rbegin(); family != families.rend(); ++family) {
      const auto [sum, count] = sum_of(medians_.at(*family), without);
      const bool widest = family == families.rbegin();
      if (widest ? count > 0 : tells(static_cast<std::size_t>(count))) {
        spread = widest ? sum / count : (sum + kWideWeight * spread) / (count + kWideWeight);
      }
    }
    return std::max(spread, kLeastSpread);
  }

  // The narrowest of these families that has models enough without one.
  const std::string& named(const std::vector<std::string>& families, const std::string& without) const {
    const auto found = std::find_if(families.begin(), families.end(), [&](const std::string& family) {
      const MedianByModel& of = medians_.at(family);
      return tells(of.size() - of.count(without));
    });
    return found == families.end() ? families.back() : *found;
  }

  // By how many times its spread a row of one more model is off with a probability of 10 % at most: each model, the new
  // one too, weighs the same, and the new one's own score might be anything.
  double likely(const std::string& without) const {
    const auto others = static_cast<double>(models() - rows_of_.count(without));
    std::vector<std::pair<double, double>> weighted;
    for (const auto& [model, rows] : rows_of_) {
      if (model != without) {
        for (const ScoredPrediction* one : rows) {
          weighted.emplace_back(score_of(*one) / spread(one->families, {model, without}),
                                1 / (others + 1) / static_cast<double>(rows.size()));
        }
      }
    }
    return largest_likely(std::move(weighted));
  }

private:
  static std::pair<double, double> sum_of(const MedianByModel& medians, const std::set<std::string>& without) {
    double sum = 0, count = 0;
    for (const auto& [model, median] : medians) {
      if (!without.contains(model)) {
        sum += median;
        count += 1;
      }
    }
    return {sum, count};
  }

  static double largest_likely(std::vector<std::pair<double, double>> weighted) {
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

  std::map<std::string, std::vector<const ScoredPrediction*>> rows_of_; // [model]
  std::map<std::string, MedianByModel> medians_;                        // [family]
};

std::map<std::string, Pool> pools_of(const std::vector<ScoredPrediction>& predictions) {
  std::map<std::string, std::vector<const ScoredPrediction*>> members;
  for (const ScoredPrediction& one : predictions) {
    members[one.families.back()].push_back(&one);
  }
  std::map<std::string, Pool> pools;
  for (const auto& [widest, of] : members) {
    pools.emplace(widest, Pool(of));
  }
  return pools;
}

} // namespace

std::vector<ErrorFamily> error_families_of(const std::vector<ScoredPrediction>& predictions) {
  const std::map<std::string, Pool> pools = pools_of(predictions);
  std::map<std::string, std::vector<double>> errors;
  std::map<std::string, std::set<std::string>> tables;
  std::map<std::string, const ScoredPrediction*> one_of; // [family]
  for (const ScoredPrediction& one : predictions) {
    for (const std::string& family : one.families) {
      errors[family].push_back(std::abs(one.predicted / one.measured - 1));
      tables[family].insert(one.table);
      one_of[family] = &one;
    }
  }
  std::vector<ErrorFamily> families;
  for (const auto& [name, one] : one_of) {
    const Pool& pool = pools.at(one->families.back());
    if (static_cast<int>(pool.models()) < kLeastModels ||
        (name != one->families.back() &&
         (!pool.tells(pool.models_of(name)) || (tables[name].size() < 2 && !tables[name].begin()->empty())))) {
      continue;
    }
    const auto from = std::find(one->families.begin(), one->families.end(), name);
    const double spread = pool.spread({from, one->families.end()}, {});
    families.push_back({name, static_cast<int>(pool.models_of(name)), static_cast<int>(errors[name].size()),
                        std::exp(pool.likely("") * spread), quantile(errors[name], 0.5)});
  }
  return families;
}

std::vector<PredictionInterval> intervals_of(const std::vector<ScoredPrediction>& predictions) {
  const std::map<std::string, Pool> pools = pools_of(predictions);
  std::map<std::pair<std::string, std::string>, double> known; // by pool and the model left out
  std::vector<PredictionInterval> intervals;
  for (const ScoredPrediction& one : predictions) {
    PredictionInterval interval{.low = 0, .high = std::numeric_limits<double>::infinity()};
    const Pool& pool = pools.at(one.families.back());
    const int others = static_cast<int>(pool.models()) - 1; // its own is among them
    if (others >= kLeastModels) {
      const auto [place, is_new] = known.try_emplace({one.families.back(), one.model}, 0.0);
      if (is_new) {
        place->second = pool.likely(one.model);
      }
      const double factor = std::exp(place->second * pool.spread(one.families, {one.model}));
      interval = {one.predicted / factor, one.predicted * factor, pool.named(one.families, one.model), others};
    }
    intervals.push_back(std::move(interval));
  }
  return intervals;
}

} // namespace stagecraft
