// SPDX-License-Identifier: Apache-2.0
#include "sim/study/plan_cache.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/clock.hpp"
#include "sim/plan/check_plan.hpp"

namespace stagecraft {
namespace {

using Told = std::vector<std::vector<double>>; // [stages][stage]

// A schedule's counts for the planner. Each count that the planner asks for is noted in `told`.
InFlight noted(const InFlight& in_flight, Told& told) {
  return [&in_flight, &told](int stage, int stages) {
    if (static_cast<std::size_t>(stages) >= told.size()) {
      told.resize(stages + 1);
    }
    std::vector<double>& held = told[stages];
    if (static_cast<std::size_t>(stage) >= held.size()) {
      held.resize(stage + 1, std::nan(""));
    }
    if (std::isnan(held[stage])) {
      held[stage] = in_flight(stage, stages);
    }
    return held[stage];
  };
}

bool tells_the_same(const InFlight& in_flight, const Told& told) {
  for (int stages = 0; stages < static_cast<int>(told.size()); ++stages) {
    for (int stage = 0; stage < static_cast<int>(told[stages].size()); ++stage) {
      if (!std::isnan(told[stages][stage]) && in_flight(stage, stages) != told[stages][stage]) {
        return false;
      }
    }
  }
  return true;
}

const Plan* plan_not_shaped_by_memory(const Planned& planned) {
  const Plan* plan = std::get_if<Plan>(&planned.result);
  return plan != nullptr && !plan->memory_bound ? plan : nullptr;
}

} // namespace

// Plans that memory did not shape are all the same, so the first of them is enough.
const PlanCache::Planning* PlanCache::serving(const Plannings& known, const PlanRequest& request) {
  const auto unshaped = std::find_if(known.begin(), known.end(), [](const Planning& one) {
    return plan_not_shaped_by_memory(one.planned) != nullptr;
  });
  if (unshaped != known.end() &&
      !plan_shortage(request.problem, *plan_not_shaped_by_memory(unshaped->planned), request.chunks, request.in_flight,
                     request.versions, request.stage_placement)) {
    return &*unshaped;
  }
  const auto same = std::find_if(known.begin(), known.end(), [&](const Planning& one) {
    return one.versions == request.versions && tells_the_same(request.in_flight, one.told);
  });
  return same != known.end() ? &*same : nullptr;
}

PlanCache::Planning PlanCache::plan(const StrategyRow& strategy, PlanRequest request) {
  Planning planning{.versions = request.versions};
  const InFlight in_flight = std::move(request.in_flight);
  request.in_flight = noted(in_flight, planning.told);
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
