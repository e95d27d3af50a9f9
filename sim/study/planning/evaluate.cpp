// SPDX-License-Identifier: Apache-2.0
#include "sim/study/planning/evaluate.hpp"

#include "sim/plan/estimate/check_plan.hpp"
#include "sim/study/measure/measure_graph.hpp"
#include "sim/study/planning/order_plan.hpp"

namespace stagecraft {
namespace {

std::variant<TaskGraph, Infeasible> graph_of_plan(StudyCosts& costs, const Plan& plan, Scenario scenario,
                                                  const GraphChoice& choice = {}, KnownStages* known = nullptr) {
  scenario.strategy = nullptr;
  scenario.plan = &plan;
  const Problem& problem = costs.problem(scenario.micro_batches, scenario.recompute);
  if (std::string lacks = missing_kernel(problem, plan); !lacks.empty()) {
    return Infeasible{std::move(lacks)};
  }
  const auto ordered = order_plan(costs, scenario, problem, plan, Folding::off, known);
  if (const Infeasible* reason = std::get_if<Infeasible>(&ordered)) {
    return *reason;
  }
  return graph_of(costs, problem, std::get<OrderedPlan>(ordered), choice);
}

} // namespace

Evaluation evaluate(StudyCosts& costs, const Plan& plan, const Scenario& under, KnownStages* known) {
  const auto made = graph_of_plan(costs, plan, under, {.exchanges = ExchangeTasks::none}, known);
  if (const Infeasible* reason = std::get_if<Infeasible>(&made)) {
    return {.why_not = reason->reason};
  }
  const auto& graph = std::get<TaskGraph>(made);
  return evaluation_of(costs.study().platform, graph, measure_analytic(costs.study(), graph));
}

std::vector<Evaluation> evaluate_on_engine(StudyCosts& costs, std::span<const Plan> plans, const Scenario& under) {
  const Study& study = costs.study();
  std::vector<Evaluation> evaluations(plans.size());
  std::vector<std::pair<std::size_t, TaskGraph>> graphs; // number of the plan
  for (std::size_t i = 0; i < plans.size(); ++i) {
    auto made = graph_of_plan(costs, plans[i], under);
    if (const Infeasible* reason = std::get_if<Infeasible>(&made)) {
      evaluations[i].why_not = reason->reason;
    } else {
      graphs.emplace_back(i, std::move(std::get<TaskGraph>(made)));
    }
  }
  std::vector<ReplayRequest> requests;
  for (const auto& [number, graph] : graphs) {
    requests.push_back({graph, study.platform, iterations_of(study, graph)});
  }
  const Replayer replay = Replayer(study.engine->replay).for_many();
  std::vector<Timeline> timelines = replay_steady(replay, requests);
  std::vector<double> spreads(requests.size(), 0.0);
  let_drift(study, replay, requests, timelines, spreads);
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    const auto& [number, graph] = graphs[i];
    evaluations[number] = evaluation_of(study.platform, graph, measure(graph, timelines[i], study.platform));
  }
  return evaluations;
}

std::vector<Evaluation> evaluate_at(StudyCosts& costs, const Plan& plan, const ScheduleRow& schedule, int micro_batches,
                                    std::span<const std::vector<double>> speeds) {
  const Study& study = costs.study();
  const auto made = graph_of_plan(costs, plan, {.schedule = &schedule, .micro_batches = micro_batches});
  if (const Infeasible* reason = std::get_if<Infeasible>(&made)) {
    return std::vector(speeds.size(), Evaluation{.why_not = reason->reason});
  }
  const auto& graph = std::get<TaskGraph>(made);
  std::vector<std::vector<SpeedChange>> changes(speeds.size());
  std::vector<ReplayRequest> requests;
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    for (const DeviceId device : costs.devices()) {
      if (speeds[i][device] != 1) {
        changes[i].push_back({device, Seconds{0}, speeds[i][device]});
      }
    }
    requests.push_back({graph, study.platform, iterations_of(study, graph), changes[i]});
  }
  std::vector<Evaluation> evaluations;
  for (const Timeline& timeline : replay_steady(Replayer(study.engine->replay).for_many(), requests)) {
    evaluations.push_back(evaluation_of(study.platform, graph, measure(graph, timeline, study.platform)));
  }
  return evaluations;
}

} // namespace stagecraft
