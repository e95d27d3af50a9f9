// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/heuristic/plan_score.hpp"

#include "sim/plan/estimate/check_plan.hpp"
#include "sim/plan/estimate/problem_memo.hpp"
#include "sim/plan/stage_cost/known_stages.hpp"

namespace stagecraft {

std::string why_not(const PlanRequest& request, const Plan& plan) {
  const Problem& problem = request.problem;
  if (std::string lacks = missing_kernel(problem, plan); !lacks.empty()) {
    return lacks;
  }
  if (std::string replicated = replicated_indivisible(plan, problem.model); !replicated.empty()) {
    return replicated;
  }
  const auto known = kept_for<KnownStages>(request, [] { return KnownStages(); });
  const auto shortage = plan_shortage(problem, plan, request.chunks, request.in_flight, request.versions,
                                      request.stage_placement, known.get());
  return shortage ? to_text(*shortage, problem.platform) : "";
}

PlanScore score_plan(const PlanRequest& request, const Plan& plan) {
  PlanScore score{.why_not = why_not(request, plan)};
  if (!score.runs()) {
    return score;
  }
  if (!request.evaluate) {
    const auto known = kept_for<KnownStages>(request, [] { return KnownStages(); });
    score.seconds = estimate_iteration(request.problem, plan, cost_plan(request.problem, plan, known.get())).value;
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
