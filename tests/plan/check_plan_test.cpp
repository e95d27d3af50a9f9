// plan_defects: a sound plan has none; each way to break one is found and named.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/estimate/check_plan.hpp"
#include "tests/catch.hpp"
#include "tests/plan/problems.hpp"

namespace stagecraft {
namespace {

// The diamond 0 -> {1, 2} -> 3 on two devices.
test::World& diamond() {
  static test::World world([] {
    test::Toy toy;
    toy.operators.assign(4, {{1}});
    toy.edges = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
    toy.devices = {{0}, {0}};
    return toy;
  }());
  return world;
}

std::string defects_of(const Plan& plan) { return join(plan_defects(plan, diamond().model, diamond().platform), "\n"); }

Plan sound() { return {.stages = {{.operators = {0, 1}, .devices = {0}}, {.operators = {2, 3}, .devices = {1}}}}; }

TEST_CASE("a sound plan has no defect", "[plan][check]") {
  CHECK(defects_of(sound()).empty());
  Plan replicated{.stages = {{.operators = {0, 1, 2, 3}, .devices = {0, 1}, .shares = {0.25, 0.75}}}};
  CHECK(defects_of(replicated).empty());
  replicated.stages[0].shares = {};
  CHECK(defects_of(replicated).empty());
}

TEST_CASE("a plan needs stages, stages need operators and devices", "[plan][check]") {
  CHECK_THAT(defects_of({}), Catch::Contains("the plan has no stage"));
  Plan plan = sound();
  plan.stages.push_back({});
  CHECK(defects_of(plan) == "stage 2 has no operator\nstage 2 has no device");
}

TEST_CASE("an operator in no stage or in two is named", "[plan][check]") {
  Plan plan = sound();
  plan.stages[1].operators = {3};
  CHECK(defects_of(plan) == "operator '2' is in no stage");
  plan.stages[1].operators = {1, 2, 3};
  CHECK(defects_of(plan) == "operator '1' is in stage 0 and in stage 1");
  plan.stages[1].operators = {2, 3, 3};
  CHECK(defects_of(plan) == "operator '3' is in stage 1 and in stage 1");
}

TEST_CASE("operators and devices that do not exist are named", "[plan][check]") {
  Plan plan = sound();
  plan.stages[1].operators.push_back(4);
  CHECK(defects_of(plan) == "stage 1 names operator number 4; the model has 4");
  plan.stages[1].operators.back() = -1;
  CHECK(defects_of(plan) == "stage 1 names operator number -1; the model has 4");
  plan = sound();
  plan.stages[1].devices = {2};
  CHECK(defects_of(plan) == "stage 1 names device number 2; the platform has 2");
  plan.stages[1].devices.assign(1'000'000, 2); // of a plan for another platform; eight are named
  CHECK_THAT(defects_of(plan), Catch::EndsWith("\nstage 1 names device number 2; the platform has 2\n"
                                               "stage 1 names 999992 more devices that the platform does not have"));
  plan.stages[1].devices = {-1};
  CHECK(defects_of(plan) == "stage 1 names device number -1; the platform has 2");
}

TEST_CASE("data that flows back is named by both ends", "[plan][check]") {
  Plan plan = sound();
  std::swap(plan.stages[0], plan.stages[1]);
  CHECK_THAT(defects_of(plan), Catch::Contains("data flows back: operator '2' in stage 0 needs '0' in stage 1"));
  // {0, 3} | {1, 2} is not convex: 3 needs what the later stage makes.
  plan.stages[0].operators = {0, 3};
  plan.stages[1].operators = {1, 2};
  CHECK_THAT(defects_of(plan), Catch::Contains("operator '3' in stage 0 needs '1' in stage 1"));
  CHECK_THAT(defects_of(plan),
             Catch::EndsWith("\nstage 0 is not convex: data leaves it and comes back by '0' → '1' → '3'"));
  // Stages in the wrong order are convex all the same.
  plan = sound();
  plan.stages = {{.operators = {1, 2, 3}, .devices = {0}}, {.operators = {0}, .devices = {1}}};
  CHECK_THAT(defects_of(plan), Catch::Contains("data flows back") && !Catch::Contains("convex"));
}

TEST_CASE("a device twice in a stage is named once", "[plan][check]") {
  Plan plan = sound();
  plan.stages[0].devices = {0, 0, 0};
  const std::string name = diamond().platform.devices[0].name;
  CHECK(defects_of(plan) == "stage 0 lists device '" + name + "' more than once");
}

TEST_CASE("shares are positive, one per device, and add up to 1", "[plan][check]") {
  const auto with = [](std::vector<double> shares) {
    return defects_of({.stages = {{.operators = {0, 1, 2, 3}, .devices = {0, 1}, .shares = std::move(shares)}}});
  };
  const std::string defect = "stage 0: shares must be positive, one per device, and add up to 1";
  CHECK(with({0.5, 0.5}).empty());
  CHECK(with({0.5, 0.5 + 1e-10}).empty()); // both sides of the tolerance
  CHECK(with({0.5, 0.5 + 1e-8}) == defect);
  CHECK(with({1}) == defect);
  CHECK(with({1, 0}) == defect);
  CHECK(with({1.5, -0.5}) == defect);
}

TEST_CASE("a degree that no replay supports is refused", "[plan][check]") {
  Plan plan = sound();
  plan.stages[0].tensor_parallel = 2;
  CHECK(defects_of(plan) == "stage 0: tensor_parallel 2 does not divide its 1 devices");
  plan = sound();
  plan.stages[0].tensor_rule = TensorRule::search;
  CHECK(defects_of(plan) == "stage 0 has a tensor_rule with a tensor_parallel of 1; allowed: from 2 on");
}

} // namespace
} // namespace stagecraft
