// What a framework does by default: the whole model on every device, kernels one by one in the order of the graph, one
// worker that loads the next batch while cores spin. The baseline of Wang et al. 2024.
// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/first_plans.hpp"

namespace stagecraft {

PlanResult split_framework(const PlanRequest& request) {
  PlanResult result = split_data_parallel(request);
  if (Plan* plan = std::get_if<Plan>(&result)) {
    plan->default_loader = true;
    for (Stage& stage : plan->stages) {
      stage.streams = 1;
    }
  }
  return result;
}

} // namespace stagecraft
