// A random walk over plans with the replay as its judge (Jia, Zaharia, Aiken 2019, FlexFlow), on chains of stages whose
// groups of devices share samples. Unlike theirs, it never jumps back to the best plan: where neighbouring plans are
// equally good, only a longer walk leads on.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "sim/base/improves.hpp"
#include "sim/plan/shares.hpp"
#include "sim/strategy/dynamic_programming/cuts.hpp"
#include "sim/strategy/first_plans.hpp"
#include "sim/strategy/heuristic/metropolis.hpp"
#include "sim/strategy/heuristic/plan_score.hpp"
#include "sim/strategy/heuristic/stage_moves.hpp"

namespace stagecraft {
namespace {

Stage make_stage(const PlanRequest& request, int first, int last, const std::vector<DeviceId>& group) {
  const Problem& problem = request.problem;
  Stage stage{.devices = group};
  stage.operators.resize(last - first);
  std::iota(stage.operators.begin(), stage.operators.end(), first);
  recompute_as_trained(problem, stage);
  if (group.size() == 1) {
    return stage;
  }
  std::vector<double> speeds;
  for (const DeviceId device : group) {
    double seconds = 0;
    for (const OperatorId op : stage.operators) {
      seconds += problem.seconds(problem.type_index(device), op);
    }
    speeds.push_back(1 / std::clamp(seconds, 1e-300, 1e300));
  }
  const std::vector<double> shares = shares_by_speed(problem, speeds);
  stage.devices.clear();
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (shares[i] > 0) { // fewer samples than devices: the slowest get none
      stage.devices.push_back(group[i]);
      stage.shares.push_back(shares[i]);
    }
  }
  return stage;
}

Plan make_group_plan(const PlanRequest& request, const StageGroups& state) {
  Plan plan;
  for (int s = 0; s < state.stages(); ++s) {
    plan.stages.push_back(make_stage(request, state.bounds[s], state.bounds[s + 1], state.groups[s]));
  }
  return plan;
}

// The state of a plan whose stages are consecutive runs of operators.
StageGroups groups_of(const PlanRequest& request, const Plan& plan) {
  StageGroups state{.bounds = {0}, .idle = request.devices};
  std::sort(state.idle.begin(), state.idle.end());
  for (const Stage& stage : plan.stages) {
    state.bounds.push_back(state.bounds.back() + static_cast<int>(stage.operators.size()));
    state.groups.push_back(stage.devices);
    std::sort(state.groups.back().begin(), state.groups.back().end());
    for (const DeviceId device : stage.devices) {
      state.idle.erase(std::find(state.idle.begin(), state.idle.end(), device));
    }
  }
  return state;
}

// The start of the walk: the better of data parallelism, where FlexFlow starts, and equal stages; if neither runs, the
// split by capability with its memory repair.
struct Start {
  Valued<StageGroups> found;
  int scored = 0;
  std::string why_not; // reason of the last plan, if none runs
};

Start find_start(const PlanRequest& request) {
  Start start;
  for (const auto split : {split_data_parallel, split_uniform, split_capability}) {
    if (split == split_capability && !start.found.state.groups.empty()) {
      break;
    }
    const PlanResult result = split(request);
    if (const Infeasible* reason = std::get_if<Infeasible>(&result)) {
      start.why_not = reason->reason;
      continue;
    }
    StageGroups state = groups_of(request, std::get<Plan>(result));
    const PlanScore score = score_plan(request, make_group_plan(request, state));
    ++start.scored;
    if (!score.runs()) {
      start.why_not = score.why_not;
    } else if (start.found.state.groups.empty() || improves(score.seconds, start.found.value)) {
      start.found = {std::move(state), score.seconds};
    }
  }
  return start;
}

} // namespace

PlanResult split_mcmc(const PlanRequest& request) {
  PlanRequest unchunked = request;
  unchunked.chunks = 1;
  const Start start = find_start(unchunked);
  if (start.found.state.groups.empty()) {
    return Infeasible{start.why_not};
  }
  Random random(request.seed);
  const Valued<StageGroups> best = metropolis<StageGroups>(
      start.found, {.proposals = request.budget - start.scored}, random, random_move,
      [&](const StageGroups& state) { return score_plan(unchunked, make_group_plan(unchunked, state)).seconds; });
  Plan plan = make_group_plan(unchunked, best.state);
  plan.objective = Objective{"iteration", Seconds{best.value}};
  return plan;
}

} // namespace stagecraft
