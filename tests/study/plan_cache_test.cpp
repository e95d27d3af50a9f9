// Which schedules one planning serves.
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "sim/study/planning/plan_scenario.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

// A planner that asks what the first of two stages holds, and puts the whole model on one device.
Plan single_stage(const PlanRequest& request) {
  request.in_flight(0, 2);
  return {.stages = {{.operators = {0, 1, 2, 3}, .devices = {request.devices.front()}}}};
}
PlanResult shaped_by_memory(const PlanRequest& request) {
  Plan plan = single_stage(request);
  plan.memory_bound = true;
  return plan;
}
PlanResult not_shaped_by_memory(const PlanRequest& request) { return single_stage(request); }

// What a schedule holds: of one stage, and of each of two.
InFlight holding(double lone, double first, double second) {
  return [=](int stage, int stages) { return stages == 1 ? lone : stage == 0 ? first : second; };
}

class Planning {
public:
  explicit Planning(PlanResult (*split)(const PlanRequest&)) : row_{.name = "test", .help = "", .split = split} {}

  const Planned* of(const InFlight& in_flight, int versions = 1, FitChange change = FitChange::none,
                    bool any_plan = false) {
    const PlanRequest request{
        .problem = costs_.problem(1), .devices = costs_.devices(), .in_flight = in_flight, .versions = versions};
    return &cache_.find_or_plan({.strategy = &row_, .change = change, .any_plan = any_plan}, request);
  }

private:
  Study study_ = study(chain_study("", "{devices: 2, memory: 1 GiB}"));
  StudyCosts costs_{study_};
  StrategyRow row_;
  PlanCache cache_;
};

TEST_CASE("a planning serves each schedule that tells the planner the same", "[study][plan-cache]") {
  Planning planning(shaped_by_memory);
  const Planned* first = planning.of(holding(1, 1, 1));
  CHECK(std::holds_alternative<Plan>(first->result));
  CHECK(planning.of(holding(1, 1, 1)) == first);
  CHECK(planning.of(holding(1, 1, 5)) == first); // nobody asked for the second stage
  CHECK(planning.of(holding(1, 2, 1)) != first);
  CHECK(planning.of(holding(3, 1, 1)) != first); // the check of the plan asks for its one stage
  CHECK(planning.of(holding(1, 1, 1), 2) != first);
  CHECK(planning.of(holding(1, 1, 1)) == first);
}

TEST_CASE("a plan that memory did not shape serves each schedule under which it fits", "[study][plan-cache]") {
  constexpr double kTooMany = std::numeric_limits<double>::max();
  Planning planning(not_shaped_by_memory);
  const Planned* first = planning.of(holding(1, 1, 1));
  CHECK(planning.of(holding(2, 3, 4), 2) == first);
  const Planned* other = planning.of(holding(kTooMany, 1, 1));
  CHECK(other != first);
  CHECK(std::holds_alternative<Infeasible>(other->result));
  CHECK(planning.of(holding(kTooMany, 1, 2)) == other);
  for (const FitChange change : {FitChange::full_recompute, FitChange::unlimited_memory}) {
    const Planned* changed = planning.of(holding(1, 1, 1), 1, change);
    CHECK(changed != first);
    CHECK((planning.of(holding(2, 3, 4), 1, change) == changed) == (change == FitChange::unlimited_memory));
    CHECK(planning.of(holding(1, 1, 1), 1, change) == changed);
  }
}

TEST_CASE("who asks for any plan is served with one that was searched for, not the other way round",
          "[study][plan-cache]") {
  Planning planning(shaped_by_memory);
  const auto ask = [&](bool any_plan) { return planning.of(holding(1, 1, 1), 1, FitChange::none, any_plan); };
  const Planned* any = ask(true);
  CHECK(ask(true) == any);
  const Planned* searched = ask(false);
  CHECK(searched != any);
  CHECK(ask(false) == searched);
  CHECK(ask(true) == searched);
}

TEST_CASE("a strategy that asks for replays is planned for each schedule", "[study][plan-cache]") {
  const Study read = study(chain_study("", "{devices: 2, bandwidth: 4 MB/s}"));
  const auto plannings = [&](const char* strategy, std::initializer_list<const char*> names) {
    ScheduleCounts counts;
    StudyMemo memo(read, counts);
    for (const char* schedule : names) {
      plan_scenario(memo, {.strategy = &find_by_name(strategies(), strategy, "strategy", {}),
                           .schedule = &find_by_name(schedules(), schedule, "schedule", {}),
                           .micro_batches = 4});
    }
    return memo.plans.plannings();
  };
  CHECK(plannings("uniform", {"gpipe", "1f1b"}) == 1);
  CHECK(plannings("best-of-random", {"gpipe", "1f1b"}) == 2);
  CHECK(plannings("best-of-random", {"1f1b", "search"}) == 1); // a schedule made after the plan is planned as 1f1b
}

TEST_CASE("two strategies that make the same plan of a chain are asked once", "[study][plan-cache]") {
  const Study read = study(chain_study("", "{devices: 2, bandwidth: 4 MB/s}"));
  ScheduleCounts counts;
  StudyMemo memo(read, counts);
  const auto plan = [&](const char* strategy) {
    const Scenario scenario{.strategy = &find_by_name(strategies(), strategy, "strategy", {}),
                            .schedule = &find_by_name(schedules(), "1f1b", "schedule", {}),
                            .micro_batches = 4};
    return std::get<Plan>(plan_scenario(memo, scenario).result);
  };
  const Plan linear = plan("ideal-linear");
  Plan all = plan("ideal");
  CHECK(memo.plans.plannings() == 1);
  CHECK(all.strategy == "ideal");
  CHECK(linear.strategy == "ideal-linear");
  all.strategy = linear.strategy;
  CHECK(all == linear);
}

} // namespace
} // namespace stagecraft::test
