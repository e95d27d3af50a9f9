// SPDX-License-Identifier: Apache-2.0
#include "sim/analysis/judgement.hpp"

#include <algorithm>
#include <map>

#include "sim/base/improves.hpp"
#include "sim/base/statistics.hpp"

namespace stagecraft {
namespace {
constexpr double kHigh = 0.95;

using ModelOnPlatform = std::pair<std::string, std::string>; // model, platform

std::map<ModelOnPlatform, Seconds> best_known(const Judgement& judgement) {
  std::map<ModelOnPlatform, Seconds> best;
  const auto keep = [&](const JudgedPlan& plan, Seconds seconds) {
    const auto [slot, is_new] = best.try_emplace({plan.model, plan.platform}, seconds);
    slot->second = is_new ? seconds : std::min(slot->second, seconds);
  };
  for (const JudgedPlan& plan : judgement.plans) {
    if (plan.feasible) {
      keep(plan, plan.spread ? plan.spread->best : plan.iteration);
    }
  }
  return best;
}

PlannerScore score_planner(const std::string& planner, const std::vector<JudgedPlan>& plans) {
  PlannerScore score{.planner = planner};
  std::vector<double> regrets;
  std::vector<double> over;
  std::vector<double> biases;
  std::vector<double> estimated;
  std::vector<double> replayed;
  std::vector<double> planning;
  std::vector<double> manual;
  for (const JudgedPlan& plan : plans) {
    if (plan.planner != planner) {
      continue;
    }
    ++score.cases;
    planning.push_back(plan.planning_seconds);
    if (plan.manual_seconds) {
      manual.push_back(plan.manual_seconds->value);
    }
    if (!plan.feasible) {
      score.why_not = score.cases == 1 ? plan.why_not : score.why_not;
      continue;
    }
    ++score.feasible;
    score.wins += plan.regret <= kTie ? 1 : 0;
    regrets.push_back(plan.regret);
    over.push_back(plan.over_bound);
    biases.push_back(plan.bias);
    estimated.push_back(plan.estimate / plan.lower_bound);
    replayed.push_back(plan.iteration / plan.lower_bound);
  }
  if (score.feasible > 0) {
    score.why_not.clear();
  }
  score.median_regret = quantile(regrets, 0.5);
  score.high_regret = quantile(regrets, kHigh);
  score.median_over_bound = quantile(over, 0.5);
  score.high_over_bound = quantile(over, kHigh);
  score.median_bias = quantile(biases, 0.5);
  score.spearman = spearman(estimated, replayed);
  score.median_planning_seconds = quantile(planning, 0.5);
  score.most_planning_seconds = quantile(planning, 1);
  if (!manual.empty()) {
    score.median_manual_seconds = Seconds{quantile(manual, 0.5)};
  }
  return score;
}

} // namespace

void score(Judgement& judgement) {
  const std::map<ModelOnPlatform, Seconds> best = best_known(judgement);
  std::vector<std::string> planners;
  for (JudgedPlan& plan : judgement.plans) {
    if (std::find(planners.begin(), planners.end(), plan.planner) == planners.end()) {
      planners.push_back(plan.planner);
    }
    if (plan.feasible) {
      plan.regret = plan.iteration / best.at({plan.model, plan.platform}) - 1;
      plan.over_bound = plan.iteration / plan.lower_bound - 1;
      plan.bias = plan.estimate / plan.iteration - 1;
    }
  }
  judgement.planners.clear();
  for (const std::string& planner : planners) {
    judgement.planners.push_back(score_planner(planner, judgement.plans));
  }
  std::stable_sort(judgement.planners.begin(), judgement.planners.end(),
                   [](const PlannerScore& a, const PlannerScore& b) {
                     if ((a.feasible > 0) != (b.feasible > 0)) {
                       return a.feasible > 0;
                     }
                     return a.feasible > 0 && a.median_regret < b.median_regret;
                   });
}

} // namespace stagecraft
