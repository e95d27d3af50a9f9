// Ju et al. 2024: profile -> graph -> augmented antichains -> antichain states in topological order -> dynamic
// programming over states and devices -> stages.
// SPDX-License-Identifier: Apache-2.0

#include "sim/base/improves.hpp"
#include "sim/strategy/dynamic_programming/device_orders.hpp"
#include "sim/strategy/first_plans.hpp"

namespace stagecraft {
namespace {

// Several stages per device: stages go round the devices as the schedule places them, and no device is left out.
PlanResult round_the_devices(const PlanRequest& request) {
  if (const std::string reason = too_many_devices(request); !reason.empty()) {
    return Infeasible{reason};
  }
  const AntichainStates states = antichain_states(request.problem.model, request.state_cap);
  const StateCosts costs = cost_states(request.problem, states);
  const std::vector<DeviceId> devices = chunked_devices(request);
  const int stages = static_cast<int>(devices.size());
  const DeviceChoices choices = ordered_choices(request.problem, type_speeds(request.problem, costs), devices, true);
  if (work_of(choices, costs) > kMostPipelineWork) {
    return Infeasible{
        std::to_string(devices.size()) + " stages and " + std::to_string(states.count()) +
        " antichain states are too many for the dynamic program; allowed: fewer devices, or a coarser model"};
  }
  const auto found = best_ideal_pipeline(request, states, costs, choices, stages, kInfinity);
  if (!found) {
    return why_no_pipeline(request, states, costs, choices, stages);
  }
  Plan plan = make_ideal_plan(request, states, *found, devices);
  plan.objective = Objective{"bottleneck", Seconds{found->bottleneck}};
  plan.note = note_of(states, request.state_cap);
  return plan;
}

} // namespace

PlanResult split_antichain(const PlanRequest& request) {
  return request.chunks == 1 ? best_over_orders(request) : round_the_devices(request);
}

} // namespace stagecraft
