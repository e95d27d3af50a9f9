// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/heuristic/plan_score.hpp"

#include "sim/plan/check_plan.hpp"

namespace stagecraft {

PlanScore score_plan(const PlanRequest& request, const Plan& plan) {
  const Problem& problem = request.problem;
  PlanScore score;
  if (score.why_not = missing_kernel(problem, plan); !score.runs()) {
    return score;
  }
  if (score.why_not = replicated_indivisible(plan, problem.model); !score.runs()) {
    return score;
  }
  if (const auto shortage =
          plan_shortage(problem, plan, request.chunks, request.in_flight, request.versions, request.stage_placement)) {
    score.why_not = to_text(*shortage, problem.platform);
    return score;
  }
  if (!request.evaluate) {
    score.seconds = estimate_iteration(problem, plan, cost_plan(problem, plan)).value;
    return score;
  }
  const Evaluation measured = request.evaluate(plan);
  score.why_not = measured.why_not;
  if (score.runs()) {
    score.seconds = measured.iteration.value;
  }
  return score;
}

} // namespace stagecraft
