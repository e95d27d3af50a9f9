// SPDX-License-Identifier: Apache-2.0
#include "sim/study/compare/prepare.hpp"

#include <algorithm>

#include "sim/result/stage_json.hpp"
#include "sim/schedule/pace.hpp"
#include "sim/study/compare/describe_rounds.hpp"
#include "sim/study/compare/plan_notes.hpp"
#include "sim/study/planning/fit_changes.hpp"
#include "sim/study/planning/make_graph.hpp"
#include "sim/study/planning/order_plan.hpp"
#include "sim/study/planning/plan_scenario.hpp"

namespace stagecraft {
namespace {

void note_asked(const StudyCosts& costs, const Scenario& scenario, Run& run) {
  run.strategy = scenario.strategy != nullptr ? std::string(scenario.strategy->name) : scenario.plan->strategy;
  run.schedule = scenario.schedule_name();
  run.engine = costs.study().engine->name;
  run.micro_batches = scenario.micro_batches;
  run.tokens = costs.study().tokens;
  const RecomputeChoice& recompute = costs.training(scenario.recompute).recompute;
  run.recompute = {std::string(name_of(recompute.what)), recompute.rule, recompute.blocks};
}

void note_plan(const Study& study, const Plan& plan, bool brief, Run& run) {
  run.note = plan.note;
  run.objective = plan.objective;
  if (!brief) {
    run.rounds = describe_rounds(plan.rounds, *study.model, study.platform);
  }
}

// What all stages of a plan recompute; "selective" where they differ.
std::string recomputed_by(const Plan& plan) {
  const Recompute first = plan.stages.front().recompute;
  const bool alike =
      std::all_of(plan.stages.begin(), plan.stages.end(), [&](const Stage& stage) { return stage.recompute == first; });
  return std::string(name_of(alike ? first : Recompute::selective));
}

void note_order(const Study& study, const Problem& problem, const OrderedPlan& ordered, bool brief, Run& run) {
  run.recompute.what = recomputed_by(ordered.plan);
  run.order = ordered.schedule.name;
  run.staleness = ordered.schedule.staleness;
  run.bottleneck = bottleneck(problem, ordered.plan, ordered.cost);
  run.estimate = estimate_period(problem, ordered.plan, ordered.cost, pace_of(ordered.schedule));
  if (!brief) {
    run.stages = describe_stages(problem.model, problem.platform, ordered.plan, ordered.cost);
    for (RunStage& stage : run.stages) {
      stage.streams = stage.streams > 0 ? stage.streams : study.training.streams;
    }
  }
}

// The index of an earlier run whose replay serves this one too, or -1.
int twin_of(const Prepared& prepared, const OrderedPlan& ordered, const std::vector<Prepared>& earlier) {
  const auto twin = std::find_if(earlier.begin(), earlier.end(), [&](const Prepared& other) {
    return other.graph != nullptr && other.run.micro_batches == prepared.run.micro_batches &&
           other.plan.stages == ordered.plan.stages && same_work(other.schedule, ordered.schedule) &&
           other.plan.default_loader == ordered.plan.default_loader && other.lazy_recompute == prepared.lazy_recompute;
  });
  return twin != earlier.end() ? static_cast<int>(twin - earlier.begin()) : -1;
}

// Sets what is to be replayed; or says why it cannot be.
std::optional<Infeasible> make_graphs(StudyCosts& costs, const Problem& problem, const OrderedPlan& ordered,
                                      Prepared& prepared) {
  auto graph = graph_of(costs, problem, ordered);
  if (const Infeasible* reason = std::get_if<Infeasible>(&graph)) {
    return *reason;
  }
  prepared.graph = std::make_unique<TaskGraph>(std::move(std::get<TaskGraph>(graph)));
  if (!ordered.schedule.flushes) {
    OrderedPlan from_the_start = ordered;
    from_the_start.schedule = from_empty(ordered.schedule);
    auto alone = graph_of(costs, problem, from_the_start);
    prepared.alone = std::make_unique<TaskGraph>(std::move(std::get<TaskGraph>(alone)));
  }
  return std::nullopt;
}

std::string too_large(const Study& study, int micro_batches) {
  return std::to_string(micro_batches) + " micro-batches on " + std::to_string(study.platform.devices.size()) +
         " devices are more work than a replay holds; allowed: at most 20000000 in their product";
}

// What perturbs devices one by one, or draws errors of links, needs all of them; so do loaders.
Folding folding_of(const Study& study) {
  return study.unfold || study.perturb || study.confidence > 0 || study.loader ? Folding::off : Folding::on;
}

// Fills in all that is known before the replay; or says why there will be none.
std::optional<Infeasible> prepare_one(StudyMemo& memo, const Scenario& scenario, const std::vector<Prepared>& earlier,
                                      Prepared& prepared) {
  StudyCosts& costs = memo.costs;
  const Study& study = costs.study();
  Run& run = prepared.run;
  note_asked(costs, scenario, run);
  if (!is_replayable(study, scenario.micro_batches)) {
    return Infeasible{too_large(study, scenario.micro_batches)};
  }
  Planned planned = plan_scenario(memo, scenario);
  run.planning_seconds = planned.seconds;
  if (const Infeasible* reason = std::get_if<Infeasible>(&planned.result)) {
    return *reason;
  }
  prepared.plan = std::move(std::get<Plan>(planned.result));
  note_plan(study, prepared.plan, prepared.brief, run);
  if (scenario.plan != nullptr) {
    run.note = plan_notes(*scenario.plan, *study.model, study.training);
  }

  const Problem& problem = costs.problem(scenario.micro_batches, scenario.recompute);
  auto made = order_plan(costs, scenario, problem, prepared.plan, folding_of(study));
  if (const Infeasible* reason = std::get_if<Infeasible>(&made)) {
    return *reason;
  }
  auto& ordered = std::get<OrderedPlan>(made);
  note_order(study, problem, ordered, prepared.brief, run);
  prepared.lazy_recompute = !problem.training.recompute.rule.early && run.recompute.what != name_of(Recompute::none);
  prepared.twin = twin_of(prepared, ordered, earlier);
  std::optional<Infeasible> why_not;
  if (prepared.twin < 0) {
    why_not = make_graphs(costs, problem, ordered, prepared);
  }
  prepared.plan = std::move(ordered.plan);
  prepared.schedule = std::move(ordered.schedule);
  prepared.rank_of = std::move(ordered.rank_of);
  return why_not;
}

} // namespace

std::vector<Prepared> prepare(StudyMemo& memo, const std::vector<Scenario>& scenarios) {
  std::vector<Prepared> all;
  all.reserve(scenarios.size());
  for (const Scenario& scenario : scenarios) {
    Prepared prepared{.recompute = scenario.recompute, .brief = scenario.brief};
    if (const std::optional<Infeasible> why = prepare_one(memo, scenario, all, prepared)) {
      prepared.run.why_not = why->reason;
    }
    if (prepared.plan.stages.empty() && looks_for_change(scenario)) { // the planning failed, not a rule of the schedule
      prepared.run.would_fit = smallest_fitting_change(memo, scenario);
    }
    all.push_back(std::move(prepared));
  }
  return all;
}

} // namespace stagecraft
