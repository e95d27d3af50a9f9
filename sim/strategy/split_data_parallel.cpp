// The whole model on every device; each takes samples in proportion to its speed.
// SPDX-License-Identifier: Apache-2.0

#include "sim/plan/estimate/shares.hpp"
#include "sim/strategy/first_plans.hpp"

namespace stagecraft {

PlanResult split_data_parallel(const PlanRequest& request) {
  const Problem& problem = request.problem;
  const AbleDevices able = able_devices(request);
  if (able.devices.empty()) {
    return Infeasible{able.lacks};
  }
  const Stage stage = make_replicated_stage(problem, all_operators(problem.model), able.devices);
  Plan plan{.stages = {stage}};
  if (able.devices.size() < request.devices.size()) {
    plan.note = "left out devices that lack kernels: " + able.lacks;
  } else if (stage.devices.size() < able.devices.size()) {
    plan.note = "a micro-batch of " + to_text(problem.samples, 0) + " samples is too small for " +
                std::to_string(able.devices.size()) + " devices";
  }
  return plan;
}

} // namespace stagecraft
