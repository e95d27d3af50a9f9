// SPDX-License-Identifier: Apache-2.0
#include "sim/study/planning/fit_changes.hpp"

#include <tuple>

#include "sim/base/improves.hpp"
#include "sim/plan/estimate/check_plan.hpp"
#include "sim/plan/estimate/total_memory.hpp"
#include "sim/study/planning/make_graph.hpp"
#include "sim/study/planning/order_plan.hpp"
#include "sim/study/planning/plan_scenario.hpp"
#include "sim/workload/blocks.hpp"

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

bool runs(StudyMemo& memo, const Scenario& scenario, const PlanResult& result, const Problem& problem) {
  const Plan* plan = std::get_if<Plan>(&result);
  return plan != nullptr && std::holds_alternative<OrderedPlan>(order_plan(memo.costs, scenario, problem, *plan));
}

// 0 where the batch has fewer samples than there are replicas.
bool can_be(const Study& study, int micro_batches) {
  return micro_batches > 0 && study.training.global_batch % micro_batches == 0 && is_replayable(study, micro_batches);
}

// A number of micro-batches as the study says it: by their number, or by the samples of a replica.
std::string batches_text(const Study& study, int micro_batches, int replicas) {
  return study.training.micro_batch_size
             ? "micro_batch_size: " + std::to_string(study.training.global_batch / (micro_batches * replicas))
             : "micro_batches: " + std::to_string(micro_batches);
}

int replicas_of(const StudyCosts& costs, const std::optional<ParallelDegrees>& degrees) {
  const auto found = mesh_of(degrees.value_or(ParallelDegrees{}), static_cast<int>(costs.devices().size()));
  return std::holds_alternative<Mesh>(found) ? std::get<Mesh>(found).data : 1;
}

// The first number of micro-batches, each twice that before, with which the plan fits; "" where none does.
std::string more_micro_batches(StudyMemo& memo, const Scenario& scenario) {
  StudyCosts& costs = memo.costs;
  constexpr int kMostDoublings = 6;
  Scenario changed = scenario;
  changed.any_plan = true;
  for (int doubling = 0; doubling < kMostDoublings; ++doubling) {
    changed.micro_batches *= 2;
    if (!can_be(costs.study(), changed.micro_batches)) {
      break;
    }
    if (runs(memo, changed, plan_scenario(memo, changed).result,
             costs.problem(changed.micro_batches, changed.recompute))) {
      return batches_text(costs.study(), changed.micro_batches, replicas_of(costs, costs.study().training.parallel));
    }
  }
  return "";
}

std::string text_of(FitChange change, const ParallelDegrees& degrees) {
  return change == FitChange::more_tensor ? "parallel.tensor: " + std::to_string(degrees.tensor)
         : change == FitChange::more_pipeline
             ? "parallel.pipeline: " + std::to_string(degrees.pipeline)
             : "parallel.zero: " + std::to_string(static_cast<int>(degrees.sharding.zero));
}

// Other degrees of a layout that the study gives, with as many samples of a replica at a time, then with one; "" where
// none fits.
std::string other_degrees(StudyMemo& memo, const Scenario& scenario) {
  StudyCosts& costs = memo.costs;
  const Study& study = costs.study();
  const int replicas = replicas_of(costs, study.training.parallel);
  for (const bool one_sample : {false, true}) {
    for (const FitChange change :
         {FitChange::share_states, FitChange::share_weights, FitChange::more_tensor, FitChange::more_pipeline}) {
      const std::optional<ParallelDegrees> degrees = costs.changed_degrees(change);
      const int now = replicas_of(costs, degrees);
      Scenario changed = scenario;
      changed.micro_batches = one_sample ? study.training.global_batch / now : scenario.micro_batches * replicas / now;
      if (!degrees || !can_be(study, changed.micro_batches) ||
          (one_sample && changed.micro_batches == scenario.micro_batches)) {
        continue;
      }
      const Problem& problem = costs.problem(changed.micro_batches, changed.recompute, change);
      if (runs(memo, changed, plan_of_strategy(memo, changed, change).result, problem)) {
        const bool same =
            study.training.micro_batch_size ? !one_sample : changed.micro_batches == scenario.micro_batches;
        return text_of(change, *degrees) + (same ? "" : " and " + batches_text(study, changed.micro_batches, now));
      }
    }
  }
  return "";
}

// The recompute with which the plan fits: of whole blocks, as frameworks have it, or of all that a stage has at once;
// "" where neither does.
std::string what_runs_again(StudyMemo& memo, const Scenario& scenario) {
  StudyCosts& costs = memo.costs;
  const RecomputeChoice& now = costs.training(scenario.recompute).recompute;
  const bool by_blocks =
      now.what == Recompute::full || now.by_all_blocks() || layer_row_of(*costs.study().model).layers.empty();
  for (const auto& [change, is_so, text] :
       {std::tuple{FitChange::block_recompute, by_blocks, "recompute: blocks"},
        std::tuple{FitChange::full_recompute, now.what == Recompute::full, "recompute: full"}}) {
    if (!is_so && runs(memo, scenario, plan_of_strategy(memo, scenario, change).result,
                       costs.problem(scenario.micro_batches, scenario.recompute, change))) {
      return text;
    }
  }
  return "";
}

std::string find_change(StudyMemo& memo, const Scenario& scenario) {
  StudyCosts& costs = memo.costs;
  if (!is_replayable(costs.study(), scenario.micro_batches)) {
    return "";
  }
  if (total_shortage(costs.problem(scenario.micro_batches, scenario.recompute), costs.devices())) {
    return ""; // however the batch is divided and whatever runs again; the reason says how many devices it takes
  }
  if (std::string more = more_micro_batches(memo, scenario); !more.empty()) {
    return more;
  }
  if (std::string again = what_runs_again(memo, scenario); !again.empty()) {
    return again;
  }
  if (scenario.strategy->takes_degrees && scenario.orders == nullptr) {
    if (std::string other = other_degrees(memo, scenario); !other.empty()) {
      return other;
    }
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
