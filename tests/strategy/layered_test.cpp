// Layered scheduling over devices, its baseline, and the times of a stage on several streams.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/passes/stream_times.hpp"
#include "tests/catch.hpp"
#include "tests/plan/problems.hpp"

namespace stagecraft {
namespace {

using test::near;

// A chain of 4, 4, 4, 4, 8, 8 s; two devices of speed 1 and one of speed 2.
test::Toy chain(int micro_batches) {
  test::Toy toy;
  for (const double seconds : {4, 4, 4, 4, 8, 8}) {
    toy.operators.push_back({{seconds, seconds / 2}});
  }
  toy.edges = test::chain_edges(6);
  toy.types = {{}, {}};
  toy.devices = {{0}, {0}, {1}};
  toy.micro_batches = micro_batches;
  return toy;
}

TEST_CASE("layered takes as many stages as pay for themselves", "[plan][layered]") {
  // Three stages of 8 s each: (M - 1) 8 + 24. The fast device alone: M 16 s. So 16 M < 8 M + 16 up to M = 2.
  const PlanResult few = test::plan_of(test::World(chain(1)), "layered");
  REQUIRE(std::holds_alternative<Plan>(few));
  CHECK(std::get<Plan>(few).stages.size() == 1);
  CHECK(std::get<Plan>(few).stages[0].devices == std::vector<DeviceId>{2});
  const PlanResult many = test::plan_of(test::World(chain(8)), "layered");
  REQUIRE(std::holds_alternative<Plan>(many));
  const Plan& plan = std::get<Plan>(many);
  CHECK(test::cuts_of(plan) == std::vector<int>{0, 2, 4, 6});
  CHECK(plan.objective->value.value == near(7 * 8 + 24));
  CHECK(plan.stages[0].streams == 4);
}

TEST_CASE("framework is data-parallel with one stream and a loader left alone", "[plan][layered]") {
  test::Toy toy = chain(1);
  toy.training.streams = 4;
  const test::World world(toy);
  const Plan baseline = std::get<Plan>(test::plan_of(world, "framework"));
  const Plan parallel = std::get<Plan>(test::plan_of(world, "data-parallel"));
  CHECK(baseline.default_loader);
  CHECK(!parallel.default_loader);
  CHECK(baseline.stages[0].devices == parallel.stages[0].devices);
  CHECK(baseline.stages[0].streams == 1);
  CHECK(parallel.stages[0].streams == 0); // as the training says
}

// a -> {b, c} -> d, 3 s each (forward 1, both gradients 1), nothing known of shares: they fill the device.
TEST_CASE("streams hide launches and nothing else of kernels that fill the device", "[plan][layered]") {
  test::Toy toy;
  toy.operators.assign(4, {{3}});
  toy.edges = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
  toy.types = {{}};
  toy.devices = {{}};
  test::World world(toy);
  for (Operator& op : world.model.operators) {
    op.forward.kernels = op.backward_input.kernels = op.backward_weight.kernels = 1;
  }
  const std::vector<OperatorId> all = {0, 1, 2, 3};
  world.platform.types[0].launch_overhead = Seconds{0};
  CHECK(stream_times(world.problem, all, 0, 1, 1).forward == near(4));
  CHECK(stream_times(world.problem, all, 0, 1, 2).forward == near(4));
  CHECK(stream_times(world.problem, all, 0, 1, 2).backward == near(8));
  world.platform.types[0].launch_overhead = Seconds{0.25};
  // b's and c's gaps lie beside each other: 4 kernels' work of 0.75 and three gaps, without levels that need joining.
  CHECK(stream_times(world.problem, all, 0, 1, 2).forward == near(4 * 0.75 + 3 * 0.25));
  CHECK(stream_times(world.problem, all, 0, 1, 1).forward == near(4));
  const StreamTimes times = stream_times(world.problem, all, 0, 1, 2);
  CHECK(times.backward >= 8 * 0.75);
  CHECK(times.backward < times.backward_input + times.backward_weight); // weight gradients fill gaps
}

// One operator that fills the arithmetic forward, and the memory bandwidth backward: 1 s each, 1 + 1 s.
TEST_CASE("a forward beside a backward takes what the scarcer resource takes", "[plan][layered]") {
  test::Toy toy;
  toy.operators.assign(1, {{3}});
  toy.types = {{}};
  toy.devices = {{}};
  test::World world(toy);
  DeviceType& type = world.platform.types[0];
  type.launch_overhead = Seconds{0};
  type.memory_bandwidth = BytesPerSecond{4};
  for (auto& of_kind : type.rates) {
    of_kind.fill(FlopsPerSecond{1});
  }
  Operator& op = world.model.operators[0];
  op.forward.flops = Flops{1};
  op.backward_input.moved_elements = op.backward_weight.moved_elements = 1; // 4 B in 1 s
  const std::vector<OperatorId> all = {0};
  const auto together = [&](bool with_weight, int streams) {
    return seconds_side_by_side(world.problem, {all}, {all}, with_weight, 0, streams);
  };
  CHECK(together(true, 1) == near(3));
  CHECK(together(true, 3) == near(2)); // both gradients want the memory, the forward runs beside them
  CHECK(together(false, 2) == near(1));
  op.forward.moved_elements = 1; // now all three want it
  CHECK(together(true, 3) == near(3));
}

} // namespace
} // namespace stagecraft
