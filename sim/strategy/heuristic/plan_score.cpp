// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/heuristic/plan_score.hpp"

#include "sim/plan/estimate/check_plan.hpp"
#include "sim/plan/estimate/problem_memo.hpp"
#include "sim/plan/stage_cost/known_stages.hpp"

namespace stagecraft {
namespace {

// With what is known of stages; null: nothing.
PlanNeeds needs_of(const Problem& problem, const Plan& plan, KnownStages* known) {
  if (std::string lacks = missing_kernel(problem, plan); !lacks.empty()) {
    return {std::move(lacks), {}};
  }
  if (std::string replicated = replicated_indivisible(plan, problem.model); !replicated.empty()) {
    return {std::move(replicated), {}};
  }
  return {"", cost_memory(problem, plan, known)};
}

std::string why_not(const PlanRequest& request, const Plan& plan, const PlanNeeds& needs) {
  if (!needs.why_not.empty()) {
    return needs.why_not;
  }
  const auto shortage = plan_shortage(request.problem, plan, needs.memory, request.chunks, request.in_flight,
                                      request.versions, request.stage_placement);
  return shortage ? to_text(*shortage, request.problem.platform) : "";
}

} // namespace

PlanNeeds needs_of(const Problem& problem, const Plan& plan) { return needs_of(problem, plan, nullptr); }

std::string why_not(const PlanRequest& request, const Plan& plan) {
  const auto known = kept_for<KnownStages>(request, [] { return KnownStages(); });
  return why_not(request, plan, needs_of(request.problem, plan, known.get()));
}

PlanScore score_plan(const PlanRequest& request, const Plan& plan) {
  const auto known = kept_for<KnownStages>(request, [] { return KnownStages(); });
  return score_plan(request, plan, needs_of(request.problem, plan, known.get()));
}

PlanScore score_plan(const PlanRequest& request, const Plan& plan, const PlanNeeds& needs) {
  PlanScore score{.why_not = why_not(request, plan, needs)};
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
