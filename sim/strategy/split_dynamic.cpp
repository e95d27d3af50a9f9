// Dynamic load balancing (a 2022 patent): the balancer's loop with replays as measurement, until the best plan is held.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/strategy/heuristic/balance.hpp"

namespace stagecraft {
namespace {

// Evaluates a plan by the closed form, for callers without a replay.
Evaluation estimate(const Problem& problem, const Plan& plan) {
  const PlanCost cost = cost_plan(problem, plan);
  Evaluation result{.iteration = estimate_iteration(problem, plan, cost), .devices = devices_of(plan)};
  result.busy.resize(result.devices.size());
  for (const StageCost& stage : cost.stages) {
    for (const ReplicaCost& replica : stage.replicas) {
      const auto at = std::find(result.devices.begin(), result.devices.end(), replica.device);
      result.busy[at - result.devices.begin()] += problem.micro_batches * replica.busy() + replica.step();
    }
  }
  for (const Seconds busy : result.busy) {
    result.tail.push_back(result.iteration - busy);
  }
  return result;
}

} // namespace

PlanResult split_dynamic(const PlanRequest& request) {
  Balancer balancer(request, request.balance);
  while (!balancer.holds() && static_cast<int>(balancer.rounds().size()) < request.budget) {
    PlanResult proposed = balancer.propose();
    if (std::holds_alternative<Infeasible>(proposed)) {
      return proposed;
    }
    if (balancer.holds()) {
      break; // no smaller step gives a plan that can be placed
    }
    const Plan& plan = std::get<Plan>(proposed);
    balancer.observe(request.evaluate ? request.evaluate(plan) : estimate(request.problem, plan));
  }
  const auto& rounds = balancer.rounds();
  if (balancer.best() == nullptr) {
    return balancer.propose();
  }
  Plan plan = *balancer.best();
  const auto best = std::find_if(rounds.begin(), rounds.end(),
                                 [&](const BalanceRound& round) { return round.stages == plan.stages; });
  plan.note = "the best of " + std::to_string(rounds.size()) + (rounds.size() == 1 ? " round" : " rounds") +
              ", found in round " + std::to_string(best - rounds.begin());
  plan.objective = Objective{"iteration time, measured", balancer.best_iteration()};
  plan.rounds = rounds;
  return plan;
}

} // namespace stagecraft
