// What keeps a scenario from running, and what would let it run.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "sim/plan/check_plan.hpp"
#include "sim/study/simulator.hpp"

namespace stagecraft {

std::vector<std::string> Simulator::defects(const Scenario& scenario) {
  const Plan& plan = *scenario.plan;
  std::vector<std::string> defects = plan_defects(plan, *study_.model, study_.platform);
  if (!defects.empty()) {
    return defects;
  }
  for (const Stage& stage : plan.stages) { // each kind of device once
    std::vector<int> types;
    for (const DeviceId device : stage.devices) {
      const int type = study_.platform.devices[device].type;
      if (std::find(types.begin(), types.end(), type) == types.end()) {
        types.push_back(type);
        std::string lacks = missing_kernel(problem(scenario.micro_batches, scenario.recompute), type, stage.operators);
        if (!lacks.empty() && std::find(defects.begin(), defects.end(), lacks) == defects.end()) {
          defects.push_back(std::move(lacks));
        }
      }
    }
  }
  if (defects.empty()) { // the replay knows the true peak of memory
    std::vector<Prepared> prepared = prepare({scenario});
    replay(prepared);
    const Prepared& one = prepared.front();
    if (one.graph) {
      defects = memory_overflows(*one.graph, one.run.metrics);
    }
    if (defects.empty() && !one.run.feasible) {
      defects.push_back(one.run.why_not);
    }
  }
  return defects;
}

// Which devices overflow, at which task and by how much.
std::vector<std::string> Simulator::memory_overflows(const TaskGraph& graph, const Metrics& metrics) const {
  std::vector<std::string> overflows;
  for (std::size_t i = 0; i < graph.devices.size(); ++i) {
    const Bytes have = study_.platform.type_of(graph.devices[i]).memory;
    const Bytes need = metrics.peak_memory[i];
    if (need > have) {
      const TaskId task = metrics.peak_task[i];
      const Action action{graph.works[graph.work[task]].kind, graph.micro_batch[task],
                          graph.works[graph.work[task]].stage};
      overflows.push_back("'" + study_.platform.devices[graph.devices[i]].name + "' overflows by " +
                          to_text(need - have) + " at " + to_text(std::span(&action, 1)) + ": " + to_text(need) +
                          " of " + to_text(have));
    }
  }
  return overflows;
}

std::string Simulator::memory_overflow(const TaskGraph& graph, const Metrics& metrics) const {
  std::vector<std::string> all = memory_overflows(graph, metrics);
  return all.empty() ? "" : std::move(all.front());
}

// Tries more micro-batches of the same batch, then full recompute at the same number, then memory: whatever fits first
// is the answer.
std::string Simulator::smallest_fitting_change(const Scenario& scenario) {
  if (!is_replayable(scenario.micro_batches)) {
    return "";
  }
  constexpr int kMostDoublings = 6;
  Scenario changed = scenario;
  const auto runs = [&](const PlanResult& result, const Problem& costs) {
    const Plan* plan = std::get_if<Plan>(&result);
    return plan != nullptr && std::holds_alternative<Ordered>(order(changed, costs, *plan));
  };
  for (int doubling = 0; doubling < kMostDoublings; ++doubling) {
    changed.micro_batches *= 2;
    if (study_.training.global_batch % changed.micro_batches != 0 || !is_replayable(changed.micro_batches)) {
      break;
    }
    if (runs(plan(changed), problem(changed.micro_batches, changed.recompute))) {
      return "micro_batches: " + std::to_string(changed.micro_batches);
    }
  }
  const Training& training = trainings_.at(scenario.recompute);
  if (training.recompute.what == Recompute::full) {
    return missing_memory(scenario);
  }
  changed = scenario;
  Training again = training;
  again.recompute = {.what = Recompute::full, .rule = training.recompute.rule};
  const Problem costs =
      make_problem(*study_.model, study_.platform, *study_.cost, again, router_, scenario.micro_batches);
  if (runs(make_plan(*scenario.strategy, request_with(scenario, costs)), costs)) {
    return "recompute: full";
  }
  return missing_memory(scenario);
}

// What the device that lacks most would need on top, were all to have as much: the split that the strategy makes on
// devices without a limit, held against the limits there are.
std::string Simulator::missing_memory(const Scenario& scenario) {
  Platform unlimited = study_.platform;
  for (DeviceType& type : unlimited.types) {
    type.memory = Bytes{std::numeric_limits<double>::infinity()};
  }
  const Problem costs = make_problem(*study_.model, unlimited, *study_.cost, trainings_.at(scenario.recompute), router_,
                                     scenario.micro_batches);
  const PlanRequest asked = request_with(scenario, costs);
  const PlanResult planned = make_plan(*scenario.strategy, asked);
  const Plan* plan = std::get_if<Plan>(&planned);
  if (plan == nullptr || std::holds_alternative<Infeasible>(order(scenario, costs, *plan))) {
    return "";
  }
  const auto shortage = plan_shortage(problem(scenario.micro_batches, scenario.recompute), *plan, asked.chunks,
                                      asked.in_flight, asked.versions, asked.stage_placement);
  constexpr double kRoundedUp = 1.001; // the text has four digits, and must not fall short
  return shortage ? to_text(kRoundedUp * (shortage->need - shortage->have)) + " more memory per device" : "";
}

} // namespace stagecraft
