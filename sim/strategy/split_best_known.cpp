// A reference for planners that is not a bound: the fastest plan that this program can find. All other strategies plan,
// their plans are replayed as the study's runs are, and the best ones are moved while that helps.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "sim/base/improves.hpp"
#include "sim/strategy/heuristic/group_plans.hpp"
#include "sim/strategy/heuristic/metropolis.hpp"
#include "sim/strategy/heuristic/placement.hpp"
#include "sim/strategy/heuristic/plan_score.hpp"
#include "sim/strategy/strategy.hpp"

namespace stagecraft {
namespace {

using Places = std::vector<int>; // [operator]: index into the request's devices

// Seconds of an iteration, infinite where a plan cannot run: on the study's engine, or as near to it as the request
// offers.
std::vector<double> seconds_of(const PlanRequest& request, const std::vector<Plan>& plans) {
  std::vector<double> seconds(plans.size(), kInfinity);
  if (!request.replay) {
    std::transform(plans.begin(), plans.end(), seconds.begin(),
                   [&](const Plan& plan) { return score_plan(request, plan).seconds; });
    return seconds;
  }
  const std::vector<Evaluation> measured = request.replay(plans);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    seconds[i] = measured[i].why_not.empty() ? measured[i].iteration.value : kInfinity;
  }
  return seconds;
}

double seconds_of(const PlanRequest& request, const Plan& plan) {
  return why_not(request, plan).empty() ? seconds_of(request, std::vector{plan}).front() : kInfinity;
}

// The different plans of all other strategies, or the first reason why there is none.
struct Rivals {
  std::vector<Plan> plans;
  std::string why_not;
};

Rivals plans_of_others(const PlanRequest& request) {
  Rivals rivals;
  for (const StrategyRow& row : strategies()) {
    if (row.reference || row.takes_degrees) {
      continue;
    }
    PlanResult result = request.plan_of ? request.plan_of(row) : make_plan(row, request);
    if (const Infeasible* reason = std::get_if<Infeasible>(&result)) {
      rivals.why_not = rivals.why_not.empty() ? reason->reason : rivals.why_not;
      continue;
    }
    Plan& plan = std::get<Plan>(result);
    const bool known = std::any_of(rivals.plans.begin(), rivals.plans.end(),
                                   [&](const Plan& other) { return other.stages == plan.stages; });
    if (!known) {
      rivals.plans.push_back(std::move(plan));
    }
  }
  return rivals;
}

// The best of some plans whose states a search can move.
struct Best {
  Plan plan;
  double seconds = kInfinity;

  void offer(const Plan& other, double takes) {
    if (improves(takes, seconds)) {
      plan = other;
      seconds = takes;
    }
  }
};

std::optional<Places> single_places(const PlanRequest& request, const Plan& plan) {
  Places place(request.problem.model.size(), 0);
  for (const Stage& stage : plan.stages) {
    if (stage.devices.size() != 1) {
      return std::nullopt;
    }
    const auto found = std::find(request.devices.begin(), request.devices.end(), stage.devices.front());
    for (const OperatorId op : stage.operators) {
      place[op] = static_cast<int>(found - request.devices.begin());
    }
  }
  return place;
}

// Whether each operator is on a device that has its kernel: only then do devices have shares by speed.
bool has_kernels(const PlanRequest& request, const Places& place) {
  const Problem& problem = request.problem;
  for (OperatorId op = 0; op < problem.model.size(); ++op) {
    if (std::isinf(problem.forward[problem.type_index(request.devices[place[op]])][op])) {
      return false;
    }
  }
  return true;
}

// One operator goes to the device of a neighbour in the graph or to any other; or two devices change places.
std::optional<Places> move_operator(const PlanRequest& request, const Places& from, Random& random) {
  const int devices = static_cast<int>(request.devices.size());
  Places to = from;
  if (random.below(4) == 0) {
    const int a = random.below(devices);
    const int b = random.below(devices);
    for (int& place : to) {
      place = place == a ? b : place == b ? a : place;
    }
  } else {
    const int op = random.below(static_cast<int>(from.size()));
    const int next = std::min(op + 1, static_cast<int>(from.size()) - 1);
    const int before = std::max(op - 1, 0);
    const int kind = random.below(3);
    to[op] = kind == 0 ? from[before] : kind == 1 ? from[next] : random.below(devices);
  }
  return to == from || !has_kernels(request, to) ? std::nullopt : std::optional(std::move(to));
}

// Walks from a state; the plan of the best state seen.
template <class State>
Best search(const PlanRequest& request, const Best& from, const State& start,
            const std::function<std::optional<State>(const State&, Random&)>& move,
            const std::function<Plan(const State&)>& plan_of) {
  Random random(request.seed);
  const MetropolisOptions options{.proposals = request.budget / 2};
  const Valued<State> found = metropolis<State>({start, from.seconds}, options, random, move, [&](const State& state) {
    return seconds_of(request, plan_of(state));
  });
  return improves(found.value, from.seconds) ? Best{plan_of(found.state), found.value} : from;
}

} // namespace

PlanResult split_best_known(const PlanRequest& request) {
  const Rivals rivals = plans_of_others(request);
  const std::vector<double> seconds = seconds_of(request, rivals.plans);
  Best best, chain, placement;
  for (std::size_t i = 0; i < rivals.plans.size(); ++i) {
    const Plan& plan = rivals.plans[i];
    best.offer(plan, seconds[i]);
    if (is_group_chain(plan)) {
      chain.offer(plan, seconds[i]);
    }
    if (single_places(request, plan)) {
      placement.offer(plan, seconds[i]);
    }
  }
  if (best.plan.stages.empty()) {
    return Infeasible{"no other strategy has a plan that runs" +
                      (rivals.why_not.empty() ? "" : "; the first one says: " + rivals.why_not)};
  }
  const std::string from = best.plan.strategy;
  const double before = best.seconds;
  if (!chain.plan.stages.empty()) {
    const Best moved = search<StageGroups>(request, chain, groups_of(request, chain.plan), random_move,
                                           [&](const StageGroups& state) { return make_group_plan(request, state); });
    best.offer(moved.plan, moved.seconds);
  }
  if (!placement.plan.stages.empty()) {
    const Best moved = search<Places>(
        request, placement, *single_places(request, placement.plan),
        [&](const Places& places, Random& random) { return move_operator(request, places, random); },
        [&](const Places& places) { return make_segment_plan(request, places); });
    best.offer(moved.plan, moved.seconds);
  }
  Plan plan = best.plan;
  plan.objective = Objective{"iteration", Seconds{best.seconds}};
  plan.note = improves(best.seconds, before) ? "moved on from the plan of " + from : "the plan of " + from;
  plan.rounds.clear();
  return plan;
}

} // namespace stagecraft
