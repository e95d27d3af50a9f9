// The list schedule: B before F, the oldest micro-batch, the longest path to go; by hand on small placements.
// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.hpp"
#include "tests/schedule/pipelines.hpp"

namespace stagecraft {
namespace {

using test::near;

Plan plan_on(const std::vector<DeviceId>& devices) {
  Plan plan;
  for (const DeviceId device : devices) {
    plan.stages.push_back({.devices = {device}});
  }
  return plan;
}

Schedule list_of(const test::Pipeline& pipeline, const PlanCost& cost, int micro_batches) {
  std::vector<DeviceId> devices;
  for (const StageCost& stage : cost.stages) {
    devices.push_back(stage.replicas.front().device);
  }
  const Platform platform = test::star_of(pipeline);
  Router router(platform);
  return make_list_schedule(router, plan_on(devices), cost, micro_batches);
}

TEST_CASE("a chain that goes back and forth between two devices", "[schedule][list]") {
  // Stages 0..3 on devices 0, 1, 0, 1, F = B = 1, two micro-batches, second by second:
  //   device 0: F0@0 F1@0 F0@2 F1@2  .    B0@2  .    B0@0 B1@2  .    B1@0
  //   device 1:  .   F0@1 F1@1 F0@3 B0@3 F1@3 B0@1 B1@3  .   B1@1  .
  const test::Pipeline pipeline{std::vector<test::StageTimes>(4, {1, 1, 0}), 2, {}, 1, 0};
  const Schedule schedule = list_of(pipeline, test::cost_of(pipeline), 2);
  REQUIRE(schedule.orders.size() == 2);
  CHECK(to_text(schedule.orders[0]) == "F0@0 F1@0 F0@2 F1@2 B0@2 B0@0 B1@2 B1@0");
  CHECK(to_text(schedule.orders[1]) == "F0@1 F1@1 F0@3 B0@3 F1@3 B0@1 B1@3 B1@1");
  CHECK(schedule_defects(schedule).empty());
  CHECK(test::run(pipeline, schedule).end() == near(11));
}

TEST_CASE("of two branches on one device the longer one goes first", "[schedule][list]") {
  // Stage 0 on device 0 feeds stages 1 (2 s in all) and 2 (3 s in all) on device 1.
  test::Pipeline pipeline{{{1, 1, 0}, {1, 1, 0}, {1, 2, 0}}, 2, {}, 1, 0};
  PlanCost cost = test::cost_of(pipeline);
  cost.stages[2].replicas[0].device = 1;
  cost.edges = {{0, 1, Bytes{0}}, {0, 2, Bytes{0}}};
  // Forward: stage 2 first. Its own backward needs no other stage, so it is ready at once and goes before stage 1.
  CHECK(to_text(list_of(pipeline, cost, 1).orders[1]) == "F0@2 B0@2 F0@1 B0@1");
  cost.stages[1].replicas[0].backward_input = Seconds{5};
  CHECK(to_text(list_of(pipeline, cost, 1).orders[1]) == "F0@1 B0@1 F0@2 B0@2");
}

TEST_CASE("on a plain pipeline of equal stages the list schedule is as quick as 1f1b", "[schedule][list]") {
  for (int p = 1; p <= 5; ++p) {
    for (int m = 1; m <= 8; ++m) {
      const test::Pipeline pipeline = test::equal_stages(p, 1, {1, 2, 0});
      const Schedule schedule = list_of(pipeline, test::cost_of(pipeline), m);
      CHECK(schedule_defects(schedule).empty());
      CHECK(test::run(pipeline, schedule).end() == near((m + p - 1) * 3));
    }
  }
}

TEST_CASE("a stage on two replicas has its work in both orders", "[schedule][list]") {
  const test::Pipeline pipeline{{{1, 1, 0}, {1, 1, 0}}, 3, {}, 1, 0};
  PlanCost cost = test::cost_of(pipeline);
  cost.stages[0].replicas[0].share = 0.5;
  cost.stages[0].replicas.push_back(cost.stages[0].replicas[0]);
  cost.stages[0].replicas[1].device = 2;
  const Platform platform = test::star_of(pipeline);
  Router router(platform);
  Plan plan = plan_on({0, 1});
  plan.stages[0].devices = {0, 2};
  const Schedule schedule = make_list_schedule(router, plan, cost, 2);
  // Ranks are devices 0, 2, 1. F1 is ready before the gradient of micro-batch 0.
  REQUIRE(schedule.orders.size() == 3);
  CHECK(to_text(schedule.orders[0]) == "F0@0 F1@0 B0@0 B1@0");
  CHECK(schedule.orders[1] == schedule.orders[0]);
  CHECK(to_text(schedule.orders[2]) == "F0@1 B0@1 F1@1 B1@1");
}

} // namespace
} // namespace stagecraft
