// SPDX-License-Identifier: Apache-2.0
#include "sim/study/planning/plan_cache.hpp"

#include <algorithm>

#include "sim/base/system/clock.hpp"
#include "sim/plan/estimate/check_plan.hpp"
#include "sim/plan/plan_bytes.hpp"

namespace stagecraft {
namespace {

const Plan* plan_not_shaped_by_memory(const Planned& planned) {
  const Plan* plan = std::get_if<Plan>(&planned.result);
  return plan != nullptr && !plan->memory_bound ? plan : nullptr;
}

} // namespace

// Plans that memory did not shape are all the same, so the first of them is enough. But what a change makes fit
// is said of one schedule, so there the planner itself must find the plan under that schedule.
const PlanCache::Planning* PlanCache::serving(const Plannings& known, const PlanKey& key, const PlanRequest& request) {
  const auto same = std::find_if(known.begin(), known.end(), [&](const Planning& one) {
    return one.versions == request.versions && request.in_flight.answers_like(one.in_flight);
  });
  if (same != known.end()) {
    return &*same;
  }
  if (key.change != FitChange::none && key.change != FitChange::unlimited_memory) {
    return nullptr;
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
  PlanKey searched = key;
  searched.any_plan = false;
  for (const PlanKey& served : {searched, key}) {
    if (const Planning* found = serving(known_[served], served, request)) {
      return found->planned;
    }
  }
  return add(key, plan(*key.strategy, request)).planned;
}

const PlanCache::Planning& PlanCache::add(const PlanKey& key, Planning planning) {
  const Planning& added = known_[key].emplace_back(std::move(planning));
  made_.emplace_back(key, &added);
  return added;
}

std::string PlanCache::made_since(std::size_t count) const {
  std::string bytes;
  for (std::size_t i = count; i < made_.size(); ++i) {
    const auto& [key, planning] = made_[i];
    put(bytes, key);
    put(bytes, planning->versions);
    put(bytes, planning->in_flight.answers().size());
    for (const std::vector<double>& row : planning->in_flight.answers()) {
      put_list(bytes, row);
    }
    put_plan(bytes, planning->planned.result);
    put(bytes, planning->planned.seconds);
  }
  return bytes;
}

void PlanCache::take(std::string_view bytes) {
  ByteReader reader(bytes);
  while (!reader.done()) {
    const auto key = reader.take<PlanKey>();
    Planning planning{.versions = reader.take<int>()};
    InFlight::Answers answers(reader.take<std::size_t>());
    for (std::vector<double>& row : answers) {
      row = reader.take_list<double>();
    }
    planning.in_flight = InFlight::answered(std::move(answers));
    planning.planned.result = take_plan(reader);
    planning.planned.seconds = reader.take<double>();
    add(key, std::move(planning));
  }
}

} // namespace stagecraft
