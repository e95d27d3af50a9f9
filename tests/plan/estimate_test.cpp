// Closed forms on a plan by hand.
// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.hpp"
#include "tests/plan/problems.hpp"

namespace stagecraft {
namespace {

using test::near;

Plan plan_of(const std::vector<std::vector<OperatorId>>& stages, const std::vector<std::vector<DeviceId>>& devices) {
  Plan plan;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    plan.stages.push_back({.operators = stages[s], .devices = devices[s]});
  }
  return plan;
}

TEST_CASE("the bottleneck is the slowest device or twice the slowest transfer", "[plan][estimate]") {
  const test::World world(test::chain_of_three());
  CHECK(world.bottleneck_of(plan_of({{0, 1, 2}}, {{0}})).value == near(18));
  CHECK(world.bottleneck_of(plan_of({{0}, {1, 2}}, {{0}, {1}})).value == near(15)); // 2 (1 + 4/2) = 6
  CHECK(world.bottleneck_of(plan_of({{0, 1}, {2}}, {{0}, {1}})).value == near(2 * (1 + 8.0 / 2)));
  CHECK(world.bottleneck_of(plan_of({{0}, {1}, {2}}, {{0}, {1}, {2}})).value == near(10));
  // Two stages on one device add up, and what passes between them is free.
  CHECK(world.bottleneck_of(plan_of({{0}, {1}, {2}}, {{0}, {1}, {0}})).value == near(12));
  CHECK(world.bottleneck_of(plan_of({{0, 1}, {2}}, {{0}, {0}})).value == near(18));
}

TEST_CASE("replicas share a stage's time, the slowest pair decides a transfer", "[plan][estimate]") {
  const test::World world(test::chain_of_three());
  const Plan plan = plan_of({{0, 1}, {2}}, {{0, 1}, {2}});
  CHECK(world.bottleneck_of(plan).value == near(10)); // 9 / 2, 9, 2 (1 + 8 / 2)
}

TEST_CASE("a tensor that crosses two boundaries counts at both", "[plan][estimate]") {
  test::Toy toy = test::chain_of_three();
  toy.edges.emplace_back(0, 2);
  const test::World world(toy);
  const Plan plan = plan_of({{0}, {1}, {2}}, {{0}, {1}, {2}});
  const PlanCost cost = cost_plan(world.problem, plan);
  CHECK(cost.cut[0].value == 4);
  CHECK(cost.cut[1].value == 4 + 8);
  // It is sent once to each stage that needs it.
  REQUIRE(cost.edges.size() == 3);
  CHECK((cost.edges[1].from == 0 && cost.edges[1].to == 2 && cost.edges[1].bytes.value == 4));
}

TEST_CASE("the estimate is (M-1) max + sum + twice the transfers + reduction + step", "[plan][estimate]") {
  const test::World world(test::chain_of_three());
  const Plan plan = plan_of({{0, 1}, {2}}, {{0}, {1}});
  const PlanCost cost = cost_plan(world.problem, plan);
  CHECK(estimate_iteration(world.problem, plan, cost).value == near((5 - 1) * 9 + 9 + 9 + 2 * (1 + 8.0 / 2)));
}

} // namespace
} // namespace stagecraft
