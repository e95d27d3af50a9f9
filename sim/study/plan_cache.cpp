// SPDX-License-Identifier: Apache-2.0
#include "sim/study/plan_cache.hpp"

#include <algorithm>

#include "sim/base/clock.hpp"
#include "sim/plan/check_plan.hpp"

namespace stagecraft {
namespace {

const Plan* plan_not_shaped_by_memory(const Planned& planned) {
  const Plan* plan = std::get_if<Plan>(&planned.result);
  return plan != nullptr && !plan->memory_bound ? plan : nullptr;
}

} // namespace

// Plans that memory did not shape are all the same, so the first of them is enough.
const PlanCache::Planning* PlanCache::serving(const Plannings& known, const PlanRequest& request) {
  const auto same = std::find_if(known.begin(), known.end(), [&](const Planning& one) {
    return one.versions == request.versions && request.in_flight.answers_like(one.in_flight);
  });
  if (same != known.end()) {
    return &*same;
  }
  const auto unshaped = std::find_if(known.begin(), known.end(), [](const Planning& one) {
    return plan_not_shaped_by_memory(one.planned) != nullptr;
  });
  const bool fits = unshaped != known.end() &&
                    !plan_shortage(request.problem, *plan_not_shaped_by_memory(unshaped->planned), request.chunks,
                                   request.in_flight, request.versions, request.stage_placement);
  return fits ? &*unshaped : nullptr;
}

PlanCache::Planning PlanCache::plan(const StrategyRow& strategy, PlanRequest request) {
  request.in_flight = request.in_flight.unasked();
  Planning planning{.versions = request.versions, .in_flight = request.in_flight};
  const auto start = Clock::now();
  planning.planned.result = make_plan(strategy, request);
  planning.planned.seconds = seconds_since(start);
  return planning;
}

const Planned& PlanCache::find_or_plan(const PlanKey& key, const PlanRequest& request) {
  Plannings& known = known_[key];
  if (const Planning* found = serving(known, request)) {
    return found->planned;
  }
  return known.emplace_back(plan(*key.strategy, request)).planned;
}

std::size_t PlanCache::plannings() const {
  std::size_t all = 0;
  for (const auto& [key, made] : known_) {
    all += made.size();
  }
  return all;
}

} // namespace stagecraft
