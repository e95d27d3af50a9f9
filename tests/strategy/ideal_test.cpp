// Least max-load over ideals: by hand, and what counts as load. The oracle is in brute_force_test.cpp, published
// figures in tests/study/dnn_partitioning_test.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/dynamic_programming/max_load/max_load.hpp"
#include "tests/catch.hpp"
#include "tests/plan/problems.hpp"

namespace stagecraft {
namespace {

using test::near;

double max_load(const test::World& world, std::string_view strategy) {
  const PlanResult result = test::plan_of(world, strategy);
  REQUIRE(std::holds_alternative<Plan>(result));
  const Plan& plan = std::get<Plan>(result);
  REQUIRE(plan.objective.has_value());
  CHECK(plan.objective->name == "max-load");
  return plan.objective->value.value;
}

std::string reason(const test::World& world, std::string_view strategy) {
  const PlanResult result = test::plan_of(world, strategy);
  REQUIRE(std::holds_alternative<Infeasible>(result));
  return std::get<Infeasible>(result).reason;
}

// Diamond a -> {b, c} -> d of 1, 2, 2, 1 s. Every tensor takes half a second with its gradient: 1 B at 4 B/s, twice.
test::Toy diamond() {
  test::Toy toy;
  toy.operators = {{{1}, 1}, {{2}, 1}, {{2}, 1}, {{1}, 1}};
  toy.edges = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
  toy.devices = {{0, 4, 0}, {0, 4, 0}};
  return toy;
}

TEST_CASE("a diamond on two devices: time and tensors add up", "[plan][ideal]") {
  // {a, b} | {c, d}: 3 s, the tensors of a and of b: 4 s on both. {a} | {b, c, d} would give 5.5, {a, b, c} | {d} 6.
  const test::World world(diamond());
  CHECK(max_load(world, "ideal") == near(4));
  const Plan plan = std::get<Plan>(test::plan_of(world, "ideal"));
  REQUIRE(plan.stages.size() == 2);
  CHECK(plan.stages[0].operators.size() == 2);
  CHECK(max_load(world, "ideal-linear") == near(4));
}

TEST_CASE("the load of a stage: each tensor once, whatever its users; one that passes by not at all", "[plan][ideal]") {
  test::Toy toy; // a feeds b, c and d; c feeds d
  toy.operators = {{{1}, 4}, {{1}, 8}, {{1}, 16}, {{1}, 32}};
  toy.edges = {{0, 1}, {0, 2}, {0, 3}, {2, 3}};
  toy.devices = {{0, 8, 0.5}, {0, 8, 0.5}};
  const test::World world(toy);
  const auto groups = load_groups(world.problem, {0, 1});
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].route.latency.value == 0.5);
  CHECK(groups[0].route.seconds_per_byte == near(1 / 8.0));
  const auto tensors = crossing_tensors(world.problem);
  const auto load = [&](const std::vector<char>& inside) {
    return stage_load(world.problem, groups[0], tensors, inside);
  };
  // A tensor and its gradient pay the latency each. a's: 1 + 2 * 4/8; c's: 1 + 2 * 16/8.
  CHECK(load({1, 0, 0, 0}) == near(1 + 2));
  CHECK(load({1, 1, 0, 0}) == near(2 + 2));
  CHECK(load({0, 1, 1, 0}) == near(2 + 2 + 5));
  CHECK(load({0, 0, 1, 1}) == near(2 + 2));
  CHECK(load({1, 1, 1, 1}) == near(4));
}

TEST_CASE("a device on a free link pays no communication", "[plan][ideal]") {
  // A chain of 4 s and 1 s with 8 B between, 2 * 8/2 = 8 s on the first type's link. All on the first device: 5 s; on
  // the second, three times as slow, 15 s. Cut after the first operator: 4 + 8 on the first, 3 on the second.
  test::Toy toy;
  toy.types = {{}, {}};
  toy.operators = {{{4, 12}, 8}, {{1, 3}, 0}};
  toy.edges = {{0, 1}};
  toy.devices = {{0, 2, 0}, {1, test::kInfinite, 0}};
  CHECK(max_load(test::World(toy), "ideal") == near(5));
  // With both on free links the cut costs nothing: 4 s.
  toy.devices[0].bandwidth = test::kInfinite;
  CHECK(max_load(test::World(toy), "ideal") == near(4));
  // Two of the second type: 4 s on the first, or 12 s; the first takes all but nothing is gained by the others.
  toy.devices[0].bandwidth = 2;
  toy.devices.push_back({1, test::kInfinite, 0});
  CHECK(max_load(test::World(toy), "ideal") == near(5));
}

TEST_CASE("devices that would not help stay unused", "[plan][ideal]") {
  test::Toy toy = diamond();
  for (test::ToyOperator& op : toy.operators) {
    op.output = 100;
  }
  const Plan plan = std::get<Plan>(test::plan_of(test::World(toy), "ideal"));
  CHECK(plan.stages.size() == 1);
  CHECK(plan.objective->value.value == near(6));
}

TEST_CASE("one order of a wide graph may miss the best split", "[plan][ideal]") {
  // Four independent operators of 3, 3, 1 and 1 s: one order, 0 1 2 3, gives 5 at best on two devices (3 + ... or 6 |
  // 2); any set is an ideal, and 3 + 1 | 3 + 1 gives 4.
  test::Toy toy;
  toy.operators = {{{3}}, {{3}}, {{1}}, {{1}}};
  toy.devices = {{0, 1, 0}, {0, 1, 0}};
  const test::World world(toy);
  CHECK(max_load(world, "ideal") == near(4));
  CHECK(max_load(world, "ideal-linear") == near(5));
}

TEST_CASE("memory: both sides of the limit, and the missing bytes", "[plan][ideal]") {
  // Two operators of 100 parameters, 12 B each with momentum: 1200 B a stage.
  test::Toy toy;
  toy.operators = {{{1}, 0, 100}, {{1}, 0, 100}};
  toy.edges = test::chain_edges(2);
  toy.devices = {{0, 1, 0}, {0, 1, 0}};
  toy.types[0].memory = 1200;
  CHECK(max_load(test::World(toy), "ideal") == near(1));
  toy.types[0].memory = 1199;
  toy.devices.push_back({1, 1, 0}); // which has room for all that both lack together, but for no operator
  toy.types.push_back({1000});
  for (test::ToyOperator& op : toy.operators) {
    op.seconds.push_back(1);
  }
  CHECK_THAT(reason(test::World(toy), "ideal"), Catch::Contains("1.000 B more than its 1.171 KiB"));
  CHECK_THAT(reason(test::World(toy), "ideal-linear"), Catch::Contains("1.000 B more than its 1.171 KiB"));
}

TEST_CASE("an operator goes where its kernel is", "[plan][ideal]") {
  test::Toy toy;
  toy.types = {{}, {}};
  toy.operators = {{{1, 9}}, {{test::kInfinite, 9}}, {{1, 9}}};
  toy.edges = test::chain_edges(3);
  toy.devices = {{0, 1, 0}, {1, 1, 0}};
  // The middle one on the second device, with its neighbour before or after it: 18 s; or all there, 27.
  CHECK(max_load(test::World(toy), "ideal") == near(18));
  toy.devices.push_back({0, 1, 0});
  CHECK(max_load(test::World(toy), "ideal") == near(9));
}

TEST_CASE("along one order of the operators both planners are one", "[plan][ideal]") {
  const StrategyRow& ideal = test::strategy_row("ideal");
  const StrategyRow& linear = test::strategy_row("ideal-linear");
  const auto planner = [](const StrategyRow& row, const test::Toy& toy, std::size_t devices = 2) {
    return &planner_of(row, test::model_of(toy), devices);
  };
  test::Toy toy;
  toy.operators = {{{1}}, {{1}}, {{1}}};
  toy.edges = {{0, 1}, {1, 2}, {0, 2}}; // a skip connection leaves one order
  CHECK(planner(ideal, toy) == &linear);
  CHECK(planner(linear, toy) == &linear);
  CHECK(planner(ideal, toy, 4096) == &linear);
  CHECK(planner(ideal, toy, 4097) == &ideal); // refuses them in its own name
  CHECK(planner(ideal, diamond()) == &ideal);
  toy.edges = {{0, 1}, {0, 2}};
  CHECK(planner(ideal, toy) == &ideal);
}

TEST_CASE("beyond 60 000 ideals the exact planner names the other", "[plan][ideal]") {
  test::Toy toy; // k operators without edges have 2^k ideals
  toy.operators.assign(16, {{1}});
  toy.devices = {{0, 1, 0}, {0, 1, 0}};
  CHECK_THAT(reason(test::World(toy), "ideal"), Catch::Contains("more than 60000 ideals; use ideal-linear"));
  CHECK(max_load(test::World(toy), "ideal-linear") == near(8));
}

TEST_CASE("the depth-first order follows a branch to its end", "[plan][ideal]") {
  test::Toy toy; // 0 -> 1 -> 2 -> 5, 0 -> 3 -> 4 -> 5
  toy.operators.assign(6, {{1}});
  toy.edges = {{0, 1}, {1, 2}, {0, 3}, {3, 4}, {2, 5}, {4, 5}};
  CHECK(depth_first_order(test::World(toy).model) == std::vector<OperatorId>{0, 3, 4, 1, 2, 5});
}

} // namespace
} // namespace stagecraft
