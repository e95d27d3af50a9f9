// The examples of docs/extending.md do what their text says. CMake takes them from the page and compiles them.
// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/schedule.hpp"
#include "tests/catch.hpp"
#include "tests/plan/problems.hpp"

namespace stagecraft {

PlanResult split_halves(const PlanRequest& request);
ScheduleResult make_fifo(const ScheduleRequest& request);

namespace {

constexpr StrategyRow kHalves{.name = "halves", .help = "", .split = split_halves, .pipeline = true};
constexpr ScheduleRow kFifo{.name = "fifo", .help = "", .make = make_fifo};

// Three operators on four devices: floor(3/2) = 1 operator in the first half, 2 in the second, two devices idle.
TEST_CASE("the strategy of docs/extending.md splits a chain into two halves", "[docs][extending]") {
  const test::World world(test::chain_of_three());
  const Plan plan = std::get<Plan>(make_plan(kHalves, world.request()));
  CHECK(plan.strategy == "halves");
  REQUIRE(plan.stages.size() == 2);
  CHECK(test::cuts_of(plan) == std::vector{0, 1, 3});
  CHECK(plan.stages[0].devices == std::vector<DeviceId>{0});
  CHECK(plan.stages[1].devices == std::vector<DeviceId>{1});
}

TEST_CASE("the strategy of docs/extending.md says why it has no plan", "[docs][extending]") {
  test::Toy toy = test::chain_of_three();
  toy.devices.resize(1);
  const test::World world(toy);
  CHECK(std::get<Infeasible>(make_plan(kHalves, world.request())).reason ==
        "halves needs two devices and two operators");
}

TEST_CASE("the schedule of docs/extending.md runs backwards in the order of forwards", "[docs][extending]") {
  const Schedule schedule = std::get<Schedule>(make_schedule(kFifo, {.ranks = 2, .micro_batches = 3}));
  CHECK(schedule.stages == 2);
  REQUIRE(schedule.orders.size() == 2);
  CHECK(to_text(schedule.orders[0]) == "F0@0 F1@0 F2@0 B0@0 B1@0 B2@0");
  CHECK(to_text(schedule.orders[1]) == "F0@1 F1@1 F2@1 B0@1 B1@1 B2@1");
  CHECK(schedule_defects(schedule).empty());
}

} // namespace
} // namespace stagecraft
