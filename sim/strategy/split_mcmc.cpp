// A random walk over plans with the replay as its judge (Jia, Zaharia, Aiken 2019, FlexFlow), on chains of stages whose
// groups of devices share samples. Unlike theirs, it never jumps back to the best plan: where neighbouring plans are
// equally good, only a longer walk leads on.
// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "sim/base/improves.hpp"
#include "sim/plan/device_classes.hpp"
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

// Iteration times of states. States that differ by devices that are interchangeable, or by whole classes of them that
// are, take as long, so that one of them is replayed.
class StateTimes {
public:
  explicit StateTimes(const PlanRequest& request)
      : request_(request), classes_(device_classes(request.problem, request.devices)),
        class_of_(request.problem.platform.devices.size(), 0), twins_(classes_.members.size()) {
    for (std::size_t i = 0; i < classes_.of.size(); ++i) {
      class_of_[static_cast<std::size_t>(request.devices[i])] = classes_.of[i];
    }
    for (std::size_t c = 0; c < twins_.size(); ++c) {
      twins_[c] = classes_.twin[c] < 0 ? static_cast<int>(c) : twins_[static_cast<std::size_t>(classes_.twin[c])];
    }
  }

  double operator()(const StageGroups& state) {
    const auto [known, is_new] = seconds_.try_emplace(key_of(state), 0.0);
    if (is_new) {
      known->second = score_plan(request_, make_group_plan(request_, state)).seconds;
    }
    return known->second;
  }

private:
  // The bounds of stages, and of each its devices in their order: the first of the twins of its class, and which of
  // these it is in the order in which they come.
  std::vector<int> key_of(const StageGroups& state) const {
    std::vector<int> key = state.bounds;
    std::vector<int> place(twins_.size(), -1), met(twins_.size(), 0); // [class], [first of twins]
    for (const std::vector<DeviceId>& group : state.groups) {
      key.push_back(static_cast<int>(group.size()));
      for (const DeviceId device : group) {
        const auto of = static_cast<std::size_t>(class_of_[static_cast<std::size_t>(device)]);
        if (place[of] < 0) {
          place[of] = met[static_cast<std::size_t>(twins_[of])]++;
        }
        key.insert(key.end(), {twins_[of], place[of]});
      }
    }
    return key;
  }

  const PlanRequest& request_;
  DeviceClasses classes_;
  std::vector<int> class_of_; // [DeviceId]
  std::vector<int> twins_;    // [class]: the first of those that are twins
  std::map<std::vector<int>, double> seconds_;
};

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
  StateTimes times(unchunked);
  const Valued<StageGroups> best = metropolis<StageGroups>(start.found, {.proposals = proposals}, random, random_move,
                                                           [&](const StageGroups& state) { return times(state); });
  Plan plan = make_group_plan(unchunked, best.state);
  plan.objective = Objective{"iteration", Seconds{best.value}};
  return plan;
}

} // namespace stagecraft
