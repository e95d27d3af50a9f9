// SPDX-License-Identifier: Apache-2.0
#include "sim/study/fit_changes.hpp"

#include "sim/base/improves.hpp"
#include "sim/plan/check_plan.hpp"
#include "sim/study/make_graph.hpp"
#include "sim/study/order_plan.hpp"
#include "sim/study/plan_scenario.hpp"

namespace stagecraft {
namespace {

// How much more memory every device would need. The strategy plans as if memory had no limit; the device that this plan
// overflows the most decides.
std::string missing_memory(StudyMemo& memo, const Scenario& scenario) {
  StudyCosts& costs = memo.costs;
  const Problem& problem = costs.problem(scenario.micro_batches, scenario.recompute, FitChange::unlimited_memory);
  const Planned planned = plan_of_strategy(memo, scenario, FitChange::unlimited_memory);
  const Plan* plan = std::get_if<Plan>(&planned.result);
  if (plan == nullptr || std::holds_alternative<Infeasible>(order_plan(costs, scenario, problem, *plan))) {
    return "";
  }
  const PlanRequest asked = plan_request(memo, scenario, problem);
  const auto shortage = plan_shortage(costs.problem(scenario.micro_batches, scenario.recompute), *plan, asked.chunks,
                                      asked.in_flight, asked.versions, asked.stage_placement);
  constexpr double kRoundedUp = 1.001; // the text has four digits and must not round below the need
  return shortage ? to_text(kRoundedUp * (shortage->need - shortage->have)) + " more memory per device" : "";
}

std::string find_change(StudyMemo& memo, const Scenario& scenario) {
  StudyCosts& costs = memo.costs;
  const Study& study = costs.study();
  if (!is_replayable(study, scenario.micro_batches)) {
    return "";
  }
  const auto runs = [&](const Scenario& changed, const PlanResult& result, const Problem& problem) {
    const Plan* plan = std::get_if<Plan>(&result);
    return plan != nullptr && std::holds_alternative<OrderedPlan>(order_plan(costs, changed, problem, *plan));
  };
  constexpr int kMostDoublings = 6;
  Scenario changed = scenario;
  for (int doubling = 0; doubling < kMostDoublings; ++doubling) {
    changed.micro_batches *= 2;
    if (study.training.global_batch % changed.micro_batches != 0 || !is_replayable(study, changed.micro_batches)) {
      break;
    }
    if (runs(changed, plan_scenario(memo, changed).result, costs.problem(changed.micro_batches, changed.recompute))) {
      return "micro_batches: " + std::to_string(changed.micro_batches);
    }
  }
  if (costs.training(scenario.recompute).recompute.what == Recompute::full) {
    return missing_memory(memo, scenario);
  }
  const Problem& problem = costs.problem(scenario.micro_batches, scenario.recompute, FitChange::full_recompute);
  if (runs(scenario, plan_of_strategy(memo, scenario, FitChange::full_recompute).result, problem)) {
    return "recompute: full";
  }
  return missing_memory(memo, scenario);
}

FitKey key_of(const Scenario& scenario) {
  return {scenario.strategy,      scenario.schedule,  scenario.orders,
          scenario.micro_batches, scenario.recompute, scenario.seed};
}

} // namespace

bool looks_for_change(const Scenario& scenario) {
  const bool other_count = scenario.orders != nullptr && scenario.orders->micro_batches != scenario.micro_batches;
  return scenario.strategy != nullptr && scenario.explain && !other_count;
}

std::string smallest_fitting_change(StudyMemo& memo, const Scenario& scenario) {
  const auto known = memo.fit_changes.find(key_of(scenario));
  return known != memo.fit_changes.end()
             ? known->second
             : memo.fit_changes.emplace(key_of(scenario), find_change(memo, scenario)).first->second;
}

void keep_fitting_change(StudyMemo& memo, const Scenario& scenario, std::string change) {
  memo.fit_changes.emplace(key_of(scenario), std::move(change));
}

} // namespace stagecraft
