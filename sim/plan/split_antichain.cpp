// Ju et al. 2024: profile -> graph -> antichain states -> topological order -> dynamic programming -> stages. The
// devices follow each other in the given order; some may be left out. SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "sim/plan/ideal_pipeline.hpp"

namespace stagecraft {

PlanResult split_antichain(const PlanRequest& request) {
  if (const std::string reason = too_many_devices(request); !reason.empty()) {
    return Infeasible{reason};
  }
  const AntichainStates states = antichain_states(request.problem.model, request.state_cap);
  const StateCosts costs = cost_states(request.problem, states);
  const std::vector<DeviceId> devices = chunked_devices(request);
  const bool all = request.chunks > 1;
  const int exact = all ? static_cast<int>(devices.size()) : 0;
  const DeviceChoices choices = ordered_choices(request.problem, type_speeds(request.problem, costs), devices, all);
  if (work_of(choices, costs) > kMostPipelineWork) {
    return Infeasible{
        std::to_string(devices.size()) + " devices and " + std::to_string(states.count()) +
        " antichain states are too many for the dynamic program; allowed: fewer devices, or a coarser model"};
  }
  const auto found =
      best_ideal_pipeline(request, states, costs, choices, exact, std::numeric_limits<double>::infinity());
  if (!found) {
    return why_no_pipeline(request, states, costs, choices, exact);
  }
  std::vector<DeviceId> used;
  for (const int node : found->nodes) {
    used.push_back(choices.nodes[node].device);
  }
  Plan plan = make_ideal_plan(request, states, *found, used);
  plan.objective = Objective{"bottleneck", Seconds{found->bottleneck}};
  if (states.linearized) {
    plan.note = "more than " + std::to_string(request.state_cap) + " antichain states: branches were put in one order";
  }
  return plan;
}

} // namespace stagecraft
