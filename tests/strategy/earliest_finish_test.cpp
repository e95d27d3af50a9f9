// Greedy placement by earliest finish: the worked examples of the fluid form, and devices that lack kernels or memory.
// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/heuristic/placements.hpp"
#include "tests/catch.hpp"
#include "tests/plan/problems.hpp"

namespace stagecraft {
namespace {

using test::kInfinite;

test::Toy chain_of_four(int micro_batches) {
  test::Toy toy;
  toy.operators.assign(4, {{2, 2}});
  toy.edges = test::chain_edges(4);
  toy.types = {{}, {}};
  toy.devices = {{0, kInfinite, 1}, {1, kInfinite, 1}}; // every transfer takes 1 s
  toy.micro_batches = micro_batches;
  return toy;
}

// The device of each operator.
std::vector<DeviceId> placement(const test::World& world, std::string_view strategy) {
  std::vector<DeviceId> devices(world.model.size(), -1);
  const Plan plan = std::get<Plan>(test::plan_of(world, strategy));
  for (const Stage& stage : plan.stages) {
    for (const OperatorId op : stage.operators) {
      devices[op] = stage.devices.front();
    }
  }
  return devices;
}

using Devices = std::vector<DeviceId>;

TEST_CASE("a chain alternates between two devices when it is run many times", "[plan][eft]") {
  // M = 4. Operator 0 holds device 0 until 8 and is first done at 2. Operator 1 could start at 8 on device 0, at 3 on
  // device 1: there, until 11, first done at 5. Operator 2: 8 on device 0, 11 on device 1. Operator 3: device 1.
  const test::World world(chain_of_four(4));
  CHECK(placement(world, "eft") == Devices{0, 1, 0, 1});
  CHECK(placement(world, "eft-contiguous") == Devices{0, 1, 1, 1}); // never back to device 0
}

TEST_CASE("with links that carry one tensor at a time, a chain stays where its tensors are large", "[plan][eft]") {
  // Tensors of 5 B at 1 B/s. eft: the first micro-batch of operator 1 arrives on device 1 at 2 + 5, so it ends there at
  // 7 + 8 = 15, before 16 on device 0. But four of them take 4 x 5 s: the last arrives at 22, and it ends at 24.
  test::Toy toy = chain_of_four(4);
  for (test::ToyOperator& op : toy.operators) {
    op.output = 5;
  }
  toy.devices = {{0, 1, 0}, {1, 1, 0}};
  const test::World world(toy);
  CHECK(placement(world, "eft")[1] == 1);
  const auto place = [](const test::World& where) {
    const std::vector<double> equal(2, 1.0);
    const Plan plan = std::get<Plan>(place_earliest_finish_links(where.request(), equal));
    std::vector<DeviceId> devices(where.model.size(), -1);
    for (const Stage& stage : plan.stages) {
      for (const OperatorId op : stage.operators) {
        devices[op] = stage.devices.front();
      }
    }
    return devices;
  };
  CHECK(place(world) == Devices{0, 0, 0, 0});
  // With 0.5 B the last arrives at 2 + 2 or when operator 0 has ended, 8.5: it ends at 10.5, and the chain alternates.
  for (test::ToyOperator& op : toy.operators) {
    op.output = 0.5;
  }
  CHECK(place(test::World(toy)) == Devices{0, 1, 0, 1});
}

TEST_CASE("run once, a chain never leaves its first device", "[plan][eft]") {
  // The transfer takes 1 s and gains nothing: device 0 is free just when its operator's output is there.
  const test::World world(chain_of_four(1));
  CHECK(placement(world, "eft") == Devices{0, 0, 0, 0});
}

TEST_CASE("a device without the kernel is passed over", "[plan][eft]") {
  test::Toy toy = chain_of_four(4);
  toy.operators[1].seconds = {kInfinite, 3};
  CHECK(placement(test::World(toy), "eft") == Devices{0, 1, 0, 1});
  toy.operators[0].seconds = {kInfinite, 2};
  CHECK(placement(test::World(toy), "eft")[0] == 1);
}

TEST_CASE("an operator without any kernel or memory left is named", "[plan][eft]") {
  test::Toy toy = chain_of_four(4);
  toy.operators[2].seconds = {kInfinite, kInfinite};
  CHECK_THAT(std::get<Infeasible>(test::plan_of(test::World(toy), "eft")).reason, Catch::Contains("operator '2'"));
  toy = chain_of_four(4);
  toy.operators[3].parameters = 1000;
  toy.types = {{8000}, {8000}}; // 16 000 B in all for its 12 000 B of states
  CHECK_THAT(std::get<Infeasible>(test::plan_of(test::World(toy), "eft")).reason,
             Catch::Contains("operator '3'") && Catch::Contains("KiB"));
}

TEST_CASE("equal devices: the lower one wins ties", "[plan][eft]") {
  test::Toy toy = chain_of_four(4);
  toy.edges.clear(); // independent operators: dealt out in turn
  CHECK(placement(test::World(toy), "eft") == Devices{0, 1, 0, 1});
}

TEST_CASE("a placement that goes back and forth becomes convex segments in order", "[plan][eft]") {
  const test::World world(chain_of_four(4));
  const Plan plan = std::get<Plan>(test::plan_of(world, "eft"));
  REQUIRE(plan.stages.size() == 4);
  for (int s = 0; s < 4; ++s) {
    CHECK(plan.stages[s].operators == std::vector<OperatorId>{s});
    CHECK(plan.stages[s].devices == Devices{s % 2});
  }
}

} // namespace
} // namespace stagecraft
