// Shared by strategies that cut the chain of operators.
// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/dynamic_programming/cuts.hpp"

namespace stagecraft {

Plan make_chain_plan(const PlanRequest& request, std::span<const int> bounds, std::span<const DeviceId> devices) {
  Plan plan;
  for (std::size_t part = 0; part + 1 < bounds.size(); ++part) {
    if (bounds[part] == bounds[part + 1]) {
      continue;
    }
    Stage stage;
    stage.operators = operators_between(bounds[part], bounds[part + 1]);
    stage.devices = {devices[part]};
    recompute_as_trained(request.problem, stage);
    plan.stages.push_back(std::move(stage));
  }
  return plan;
}

std::string too_many_stages(const PlanRequest& request) {
  const auto wanted = static_cast<int>(request.devices.size()) * request.chunks;
  if (request.problem.model.size() >= wanted) {
    return "";
  }
  return "the model has " + std::to_string(request.problem.model.size()) + " operators, fewer than the " +
         std::to_string(wanted) + " stages asked for (" + std::to_string(request.devices.size()) + " devices x " +
         std::to_string(request.chunks) + " chunks)";
}

} // namespace stagecraft
