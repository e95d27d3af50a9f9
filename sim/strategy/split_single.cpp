// The whole model on the fastest device that holds it.
// SPDX-License-Identifier: Apache-2.0

#include "sim/base/improves.hpp"
#include "sim/plan/estimate/check_plan.hpp"
#include "sim/plan/estimate/estimate.hpp"
#include "sim/plan/estimate/plan_request.hpp"

namespace stagecraft {

PlanResult split_single(const PlanRequest& request) {
  const Problem& problem = request.problem;
  Plan best;
  double best_seconds = 0;
  bool best_fits = false;
  std::string reason;
  for (const DeviceId device : request.devices) {
    Stage stage;
    stage.operators = all_operators(problem.model);
    stage.devices = {device};
    recompute_as_trained(problem, stage);
    if (const std::string lacks = missing_kernel(problem, problem.type_index(device), stage.operators);
        !lacks.empty()) {
      reason = lacks;
      continue;
    }
    const Plan plan{.stages = {stage}};
    const PlanCost cost = cost_plan(problem, plan);
    const bool fits = !memory_shortage(problem, plan, cost, request.in_flight, request.versions);
    const double seconds = bottleneck(problem, plan, cost).value;
    if (best.stages.empty() || (fits && !best_fits) || (fits == best_fits && improves(seconds, best_seconds))) {
      best = plan;
      best_seconds = seconds;
      best_fits = fits;
    }
  }
  if (best.stages.empty()) {
    return Infeasible{reason};
  }
  return best;
}

} // namespace stagecraft
