// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/heuristic/group_plans.hpp"

#include <algorithm>

#include "sim/plan/estimate/shares.hpp"

namespace stagecraft {
namespace {

Stage make_stage(const PlanRequest& request, int first, int last, const std::vector<DeviceId>& group) {
  const Problem& problem = request.problem;
  Stage stage{.operators = operators_between(first, last), .devices = group};
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

} // namespace

Plan make_group_plan(const PlanRequest& request, const StageGroups& state) {
  Plan plan;
  for (int s = 0; s < state.stages(); ++s) {
    plan.stages.push_back(make_stage(request, state.bounds[s], state.bounds[s + 1], state.groups[s]));
  }
  return plan;
}

bool is_group_chain(const Plan& plan) {
  OperatorId next = 0;
  std::size_t places = 0;
  for (const Stage& stage : plan.stages) {
    if (stage.tensor_parallel != 1 || stage.turns > 1 || stage.operators.front() != next ||
        stage.operators.back() - next + 1 != static_cast<OperatorId>(stage.operators.size())) {
      return false;
    }
    next = stage.operators.back() + 1;
    places += stage.devices.size();
  }
  return devices_of(plan).size() == places;
}

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

} // namespace stagecraft
