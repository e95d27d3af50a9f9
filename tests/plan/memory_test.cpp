// Memory limits of plans, both sides of them: exactly full is feasible, one byte less is not.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/estimate/total_memory.hpp"
#include "tests/catch.hpp"
#include "tests/plan/problems.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

// Four operators, each 10 parameters, 40 B of activations kept and a tensor of 8 B; the model's input is 4 B.
test::Toy chain(int devices, double memory, int micro_batches) {
  test::Toy toy;
  toy.operators.assign(4, {{1}, 8, 10, 40});
  toy.edges = test::chain_edges(4);
  toy.types = {{memory, 1}};
  toy.devices.assign(devices, {});
  toy.micro_batches = micro_batches;
  toy.input = 4;
  return toy;
}

TEST_CASE("a device exactly full is feasible, one byte less is not", "[plan][memory]") {
  // fp32 momentum: 12 B per parameter, 480 in all; 160 B of activations of the one micro-batch in flight (a lone stage
  // holds one whatever M is); buffers for the model's input, 2 x 4.
  const double full = 480 + 160 + 8;
  for (const std::string_view name :
       {"single", "uniform", "parameters", "block-partition", "capability", "antichain", "optimal", "data-parallel"}) {
    CAPTURE(name);
    CHECK(std::holds_alternative<Plan>(test::plan_of(test::World(chain(1, full, 4)), name)));
    const PlanResult less = test::plan_of(test::World(chain(1, full - 1, 4)), name);
    REQUIRE(std::holds_alternative<Infeasible>(less));
    CHECK_THAT(std::get<Infeasible>(less).reason, Catch::Contains("needs 648.0 B, 1.000 B more than its 647.0 B"));
  }
}

// One copy of the states is 480 B. On two devices of 240 B each it may fit, as far as all memory together says; on two
// of 239 B it never does, whoever plans, and three of 239 B would hold it (2.008 of them).
TEST_CASE("a model of which one copy exceeds all devices together fits under no planner", "[plan][memory]") {
  CHECK_FALSE(total_shortage(test::World(chain(2, 240, 4)).problem, {0, 1}));
  const test::World small(chain(2, 239, 4));
  const auto shortage = total_shortage(small.problem, {0, 1});
  REQUIRE(shortage);
  CHECK(shortage->need == Bytes{480});
  CHECK(shortage->have == Bytes{478});
  CHECK(shortage->least_devices() == 3);
  for (const StrategyRow& strategy : strategies()) {
    CAPTURE(strategy.name);
    const PlanResult result = make_plan(strategy, small.request());
    REQUIRE(std::holds_alternative<Infeasible>(result));
    CHECK(strategy.takes_degrees != (std::get<Infeasible>(result).reason ==
                                     "weights, gradients and optimizer states take 480.0 B, and all 2 devices have "
                                     "478.0 B together; allowed: at least 3 devices of 239.0 B"));
  }
}

TEST_CASE("what the host or other replicas hold is no part of what all devices lack", "[plan][memory]") {
  test::Toy toy = chain(2, 239, 4);
  toy.training.offload.optimizer = 0.5;
  CHECK_FALSE(total_shortage(test::World(toy).problem, {0, 1}));
  toy = chain(2, 239, 4);
  toy.training.parallel.emplace();
  CHECK_FALSE(total_shortage(test::World(toy).problem, {0, 1}));
}

TEST_CASE("the first stage of a pipeline holds more micro-batches", "[plan][memory]") {
  // Two stages of two operators: 240 B of weights and states; in flight 2 and 1 of 80 B; borders 4 + 8 and 8 + 0.
  const double first = 240 + 2 * 80 + 2 * (4 + 8);
  for (const std::string_view name :
       {"uniform", "parameters", "block-partition", "capability", "antichain", "optimal"}) {
    CAPTURE(name);
    const PlanResult full = test::plan_of(test::World(chain(2, first, 4)), name);
    REQUIRE(std::holds_alternative<Plan>(full));
    CHECK(test::cuts_of(std::get<Plan>(full)) == std::vector<int>{0, 2, 4});
  }
  const PlanResult less = test::plan_of(test::World(chain(2, first - 1, 4)), "uniform");
  CHECK_THAT(std::get<Infeasible>(less).reason, Catch::Contains("stage 0") && Catch::Contains("needs 424.0 B"));
}

TEST_CASE("planners that see memory move the cut instead of giving up", "[plan][memory]") {
  // With one byte less on the first of two devices, cutting after the first operator fits: 120 + 2 x 40 + 2 x 12 = 224
  // there and 360 + 120 + 2 x 8 = 496 on the second.
  test::Toy toy = chain(2, 423, 4);
  toy.types = {{423, 1}, {496, 1}};
  toy.devices = {{0}, {1}};
  for (test::ToyOperator& op : toy.operators) {
    op.seconds = {1, 1};
  }
  for (const std::string_view name : {"capability", "capability-refined", "antichain", "optimal"}) {
    CAPTURE(name);
    toy.types[1].memory = 496;
    const PlanResult moved = test::plan_of(test::World(toy), name);
    REQUIRE(std::holds_alternative<Plan>(moved));
    // Who chooses the devices turns them round: 424 B fit on the second, 240 + 80 + 2 x 8 = 336 B on the first.
    const bool chooses = name == "optimal";
    const double expected = chooses ? 2 : 3;
    CHECK(test::World(toy).bottleneck_of(std::get<Plan>(moved)).value == test::near(expected));
    toy.types[1].memory = 495;
    CHECK(std::holds_alternative<Infeasible>(test::plan_of(test::World(toy), name)) == !chooses);
  }
}

TEST_CASE("weight versions cost weights only", "[plan][memory]") {
  const test::World world(chain(1, 480 + 160 + 8 + 2 * 160, 4));
  PlanRequest request = world.request();
  request.versions = 3; // two more, 40 parameters x 4 B each
  CHECK(std::holds_alternative<Plan>(make_plan(test::strategy_row("single"), request)));
  request.versions = 4;
  CHECK(std::holds_alternative<Infeasible>(make_plan(test::strategy_row("single"), request)));
}

TEST_CASE("a planner counts the input of a recomputing first stage", "[plan][memory]") {
  // One device, recompute: held per micro-batch the input of 4 B; workspace 160; buffers 2 x 4.
  test::Toy toy = chain(1, 480 + 4 + 160 + 8, 4);
  toy.training.recompute.what = Recompute::full;
  CHECK(std::holds_alternative<Plan>(test::plan_of(test::World(toy), "optimal")));
  toy.types[0].memory -= 1;
  CHECK(std::holds_alternative<Infeasible>(test::plan_of(test::World(toy), "optimal")));
}

// A product, an activation and a product of 4 tokens, in elements: they keep 32, 64 and 64. Where the activation runs
// again it keeps what it reads, 64, once, and makes again what the second product would keep.
TEST_CASE("planners count of a product what the activation before it does not make again",
          "[plan][memory][recompute]") {
  const ModelGraph model = test::workload("name: products\ninput: {shape: [4, 8]}\nlayers:\n"
                                          "  - {name: layer.0.up, kind: linear, features: 16}\n"
                                          "  - {name: layer.0.gelu, kind: gelu}\n"
                                          "  - {name: layer.0.down, kind: linear, features: 8}\n");
  const test::World world(chain(1, 1e9, 4));
  const CostModelResult cost = make_roofline({model});
  const auto held = [&](bool early) {
    Training training;
    training.recompute.what = Recompute::selective;
    training.recompute.operators = {"layer.0.gelu"};
    training.recompute.rule.early = early;
    Router router(world.platform);
    const Problem problem =
        make_problem(model, world.platform, *std::get<std::unique_ptr<CostModel>>(cost), training, router, 1);
    Activations sum;
    for (OperatorId op = 0; op < model.size(); ++op) {
      sum += problem.stash(op);
    }
    return std::pair{sum.held.value / 4, sum.again.value / 4};
  };
  CHECK(held(true) == std::pair{32.0 + 64, 64.0 + 64}); // its own and the product's, of one micro-batch at a time
  CHECK(held(false) == std::pair{32.0 + 64, 0.0});      // block by block: what one restores does not add up
}

TEST_CASE("a tensor that only passes by a stage takes no memory there", "[plan][memory]") {
  // 1 -> 3 carries 1000 B, 0 -> 2 -> 3 carries 4 B each way; one operator's work per device but the first's two. Stage
  // {2} on the small device in the middle needs 2 (4 + 4) B; the large tensor goes past it.
  test::Toy toy;
  toy.operators = {{{1, 1}, 4}, {{1, 1}, 1000}, {{2, 2}, 4}, {{2, 2}, 4}};
  toy.edges = {{0, 2}, {1, 3}, {2, 3}};
  toy.types = {{2100, 1}, {16, 1}};
  toy.devices = {{0}, {1}, {0}};
  const PlanResult result = test::plan_of(test::World(toy), "antichain");
  REQUIRE(std::holds_alternative<Plan>(result));
  CHECK(test::World(toy).bottleneck_of(std::get<Plan>(result)).value == test::near(2));
  toy.types[1].memory = 15;
  const PlanResult less = test::plan_of(test::World(toy), "antichain");
  REQUIRE(std::holds_alternative<Plan>(less));
  CHECK(test::World(toy).bottleneck_of(std::get<Plan>(less)).value == test::near(3)); // {0, 2} and {1, 3}
}

} // namespace
} // namespace stagecraft
