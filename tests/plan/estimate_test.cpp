// Closed forms on a plan by hand.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/plan/estimate/steady_estimate.hpp"
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

// Stages of 9 s each, 5 micro-batches, 1 + 8/2 = 5 s there and back. Stage 0 is one micro-batch ahead of stage 1, so
// two are done in the time of one round trip: (9 + 9 + 2 x 5)/2 = 14 s each. On one device 18 s each.
TEST_CASE("the estimate without a flush is the longest loop", "[plan][estimate]") {
  const test::World world(test::chain_of_three());
  const auto estimate = [&](const Plan& plan) {
    return estimate_period(world.problem, plan, cost_plan(world.problem, plan), {.flushes = false}).value;
  };
  CHECK(estimate(plan_of({{0, 1}, {2}}, {{0}, {1}})) == near(5 * 14));
  CHECK(estimate(plan_of({{0, 1, 2}}, {{0}})) == near(5 * 18));
  // 3, 6 and 9 s; 1 + 4/2 = 3 s and 5 s. The loops of stages 1 and 2: (6 + 9 + 2 x 5)/2 = 12.5; of all three:
  // (3 + 6 + 9 + 2 x 3 + 2 x 5)/3 = 34/3; of 0 and 1: (3 + 6 + 6)/2.
  CHECK(estimate(plan_of({{0}, {1}, {2}}, {{0}, {1}, {2}})) == near(5 * 12.5));
  const Plan plan = plan_of({{0, 1}, {2}}, {{0}, {1}});
  CHECK(estimate_period(world.problem, plan, cost_plan(world.problem, plan), {}).value == near(64)); // with a flush
}

// Two replicas of 9 s, 5 micro-batches: 45 s. 4 B of gradients per parameter go round in 4 w/2 + 2 s.
TEST_CASE("the estimate without a flush hides a reduction only behind a late step", "[plan][estimate]") {
  for (const double parameters : {20.0, 21.5, 30.0}) {
    test::Toy toy = test::chain_of_three();
    toy.operators[0].parameters = parameters;
    const test::World world(toy);
    const Plan plan = plan_of({{0, 1, 2}}, {{0, 1}});
    const PlanCost cost = cost_plan(world.problem, plan);
    const double reduce = 2 * parameters + 2;
    const double step = cost.stages[0].replicas[0].optimizer.value;
    CAPTURE(parameters, step);
    const auto estimate = [&](const Pace& pace) { return estimate_period(world.problem, plan, cost, pace).value; };
    CHECK(estimate({.flushes = false}) == near(45 + reduce + step));
    CHECK(estimate({.flushes = false, .steps_each_micro_batch = true}) == near(5 * (9 + reduce + step)));
    CHECK(estimate({.flushes = false, .steps_late = true}) == near(std::max(45 + step, reduce)));
  }
}

} // namespace
} // namespace stagecraft
