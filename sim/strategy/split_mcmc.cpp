// A random walk over plans with the replay as its judge (Jia, Zaharia, Aiken 2019, FlexFlow), on chains of stages whose
// groups of devices share samples. Unlike theirs, it never jumps back to the best plan: where neighbouring plans are
// equally good, only a longer walk leads on.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/improves.hpp"
#include "sim/strategy/first_plans.hpp"
#include "sim/strategy/heuristic/group_plans.hpp"
#include "sim/strategy/heuristic/metropolis.hpp"
#include "sim/strategy/heuristic/plan_score.hpp"

namespace stagecraft {
namespace {

// The start of the walk: the better of data parallelism, where FlexFlow starts, and equal stages; if neither runs, the
// split by capability with its memory repair.
struct Start {
  Valued<StageGroups> found;
  int scored = 0;
  std::string why_not; // reason of the last plan, if none runs
};

Start find_start(const PlanRequest& request) {
  Start start;
  for (const auto split : {split_data_parallel, split_uniform, split_capability}) {
    if (split == split_capability && !start.found.state.groups.empty()) {
      break;
    }
    const PlanResult result = split(request);
    if (const Infeasible* reason = std::get_if<Infeasible>(&result)) {
      start.why_not = reason->reason;
      continue;
    }
    StageGroups state = groups_of(request, std::get<Plan>(result));
    const PlanScore score = score_plan(request, make_group_plan(request, state));
    ++start.scored;
    if (!score.runs()) {
      start.why_not = score.why_not;
    } else if (start.found.state.groups.empty() || improves(score.seconds, start.found.value)) {
      start.found = {std::move(state), score.seconds};
    }
  }
  return start;
}

} // namespace

PlanResult split_mcmc(const PlanRequest& request) {
  PlanRequest unchunked = request;
  unchunked.chunks = 1;
  const Start start = find_start(unchunked);
  if (start.found.state.groups.empty()) {
    return Infeasible{start.why_not};
  }
  Random random(request.seed);
  const int proposals = request.any_plan ? 0 : request.budget - start.scored;
  const Valued<StageGroups> best = metropolis<StageGroups>(
      start.found, {.proposals = proposals}, random, random_move,
      [&](const StageGroups& state) { return score_plan(unchunked, make_group_plan(unchunked, state)).seconds; });
  Plan plan = make_group_plan(unchunked, best.state);
  plan.objective = Objective{"iteration", Seconds{best.value}};
  return plan;
}

} // namespace stagecraft
