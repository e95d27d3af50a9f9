// How good planners are: every planner's plan for every model on every platform, and each planner's score. Plain
// values; the JSON keys have the same names (docs/formats/results.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"

namespace stagecraft {

/// The spread of a planner that was drawn many times, over the draws that fit.
struct Spread {
  int draws = 0, feasible = 0;
  Seconds best, low, median, high; ///< least; 5, 50 and 95 % quantiles
};

/// One planner on one model and platform, with its own choice of micro-batches. For a planner drawn many times, the
/// median draw stands for all. Where `feasible` is false only the names, `why_not` and the planning time have values.
struct JudgedPlan {
  std::string planner, model, platform;
  int micro_batches = 1;
  bool feasible = false;
  std::string why_not, note;
  Seconds iteration, estimate, bottleneck, lower_bound;
  double speedup = 0;                    ///< over the fastest single device, as in compare
  double load_imbalance = 0;             ///< largest / mean busy - 1, over the devices in use
  std::vector<double> staleness;         ///< of each stage, as in compare; empty: none
  double regret = 0;                     ///< iteration / the best known iteration of this model and platform - 1
  double over_bound = 0;                 ///< iteration / lower bound - 1
  double bias = 0;                       ///< estimate / iteration - 1
  double planning_seconds = 0;           ///< time of this program or of the foreign command; not deterministic
  std::optional<Seconds> manual_seconds; ///< time of a person for the same, as the study models it
  std::optional<Spread> spread;
};

/// One planner over all models and platforms. Quantiles are over the plans that fit.
struct PlannerScore {
  std::string planner;
  int cases = 0, feasible = 0, wins = 0;
  std::string why_not;                       ///< of its first case, where none of its plans fits
  double median_regret = 0, high_regret = 0; ///< 50 and 95 %
  double median_over_bound = 0, high_over_bound = 0;
  double median_bias = 0;
  std::optional<double> spearman; ///< of estimate / bound against iteration / bound
  double median_planning_seconds = 0, most_planning_seconds = 0;
  std::optional<Seconds> median_manual_seconds;
};

struct Judgement {
  std::string name, schedule, engine;
  std::optional<Seconds> median_profile_seconds; ///< to measure every operator, as the study models it
  std::vector<PlannerScore> planners;            ///< by median regret; those without a plan that fits come last
  std::vector<JudgedPlan> plans;        ///< model by model, platform by platform, planners in the order asked for
  std::vector<std::string> inputs = {}; ///< files, for readers to find
};

/// Fills in regret, over_bound and bias of all plans, and the scores.
void score(Judgement& judgement);

/// Documents of schema stagecraft/1; `timing` false leaves out what differs from call to call.
std::string to_json(const Judgement& judgement, bool timing);
/// One line per judged plan.
std::string to_csv(const Judgement& judgement);

} // namespace stagecraft
