// amp: the cuts of least latency against all cuts, degrees by hand.
// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "sim/strategy/dynamic_programming/latency_cuts.hpp"
#include "tests/catch.hpp"
#include "tests/plan/problems.hpp"

namespace stagecraft {
namespace {

using test::near;

// The least latency over all ways to cut [first, layers) into the parts left.
double all_cuts(const LatencyChain& chain, int part, int first, double bottleneck, double sum) {
  if (part == chain.parts) {
    return first == chain.layers ? chain.repeats * bottleneck + sum : test::kInfinite;
  }
  if (first == chain.layers) {
    return test::kInfinite; // nothing left for this part
  }
  const double before = part > 0 ? chain.transfer(part, first) : 0;
  double best = test::kInfinite;
  for (int last = first + 1; last <= chain.layers; ++last) {
    const double seconds = chain.seconds(part, first, last);
    best = std::min(best, all_cuts(chain, part + 1, last, std::max(bottleneck, seconds), sum + before + seconds));
  }
  return best;
}

TEST_CASE("cuts have the least latency of all", "[plan][amp]") {
  std::mt19937 random(17);
  int middle = 0; // neither the least sum nor the least bottleneck
  for (int n = 0; n < 300; ++n) {
    LatencyChain chain{.layers = 3 + static_cast<int>(random() % 7), .repeats = static_cast<double>(random() % 6)};
    chain.parts = 1 + static_cast<int>(random() % std::min(chain.layers, 4));
    std::vector<double> weights(chain.layers), cuts(chain.layers), speeds(chain.parts);
    for (auto* list : {&weights, &cuts, &speeds}) {
      for (double& one : *list) {
        one = static_cast<double>(1 + random() % 20);
      }
    }
    chain.seconds = [&](int part, int first, int last) {
      double sum = 0;
      for (int i = first; i < last; ++i) {
        sum += weights[i];
      }
      return sum / speeds[part] > 15 ? test::kInfinite : sum / speeds[part]; // some do not fit
    };
    chain.transfer = [&](int, int cut) { return cuts[cut] / 4; };
    const double expected = all_cuts(chain, 0, 0, 0, 0);
    const auto found = latency_cuts(chain);
    CAPTURE(n);
    REQUIRE(found.has_value() == (expected < test::kInfinite));
    if (found) {
      CHECK(found->latency == near(expected));
      double bottleneck = 0;
      double sum = 0;
      for (int part = 0; part < chain.parts; ++part) {
        const double seconds = chain.seconds(part, found->bounds[part], found->bounds[part + 1]);
        bottleneck = std::max(bottleneck, seconds);
        sum += seconds + (part > 0 ? chain.transfer(part, found->bounds[part]) : 0);
      }
      CHECK(chain.repeats * bottleneck + sum == near(found->latency));
      LatencyChain alone = chain;
      alone.repeats = 0;
      LatencyChain balanced = chain;
      balanced.repeats = 1e6;
      middle += found->bottleneck < latency_cuts(alone)->bottleneck * (1 - 1e-9) &&
                found->bottleneck > latency_cuts(balanced)->bottleneck * (1 + 1e-9);
    }
  }
  CHECK(middle > 0);
}

test::Toy equal_chain(int operators, int devices, int micro_batches) {
  test::Toy toy;
  toy.operators.assign(operators, {{3}, 0, 1}); // weights, so that groups divide them
  toy.edges = test::chain_edges(operators);
  toy.devices.assign(devices, {});
  toy.micro_batches = micro_batches;
  return toy;
}

TEST_CASE("without traffic a group of all devices has the least latency", "[plan][amp]") {
  // 4 operators of 3 s, no bytes to send: 12/2 s for each of 3 micro-batches at degree 2; a pipeline takes (3 - 1) 6
  // + 12.
  const test::World world(equal_chain(4, 2, 3));
  const Plan plan = std::get<Plan>(test::plan_of(world, "amp"));
  CHECK(plan.stages.size() == 1);
  CHECK(plan.stages[0].tensor_parallel == 2);
  CHECK(plan.objective->name == "latency");
  CHECK(plan.objective->value.value == near(18));
}

TEST_CASE("where a group must sum large outputs a pipeline wins", "[plan][amp]") {
  // Each operator makes 8 B: at degree 2 and 4 B/s a sum takes 2 s. Of two pairs both sum their output, the second its
  // input's gradient: (6 + 3 x 2) 3 = 36 s. The pipeline: 2 x 6 + 12 + 2 x 2.
  test::Toy toy = equal_chain(4, 2, 3);
  for (test::ToyOperator& op : toy.operators) {
    op.output = 8;
    op.parameters = 1;
  }
  toy.devices.assign(2, {0, 4});
  const test::World world(toy);
  const Plan plan = std::get<Plan>(test::plan_of(world, "amp"));
  REQUIRE(plan.stages.size() == 2);
  CHECK(plan.objective->value.value == near(2 * 6 + 12 + 2 * 2));
}

TEST_CASE("a slower device gets fewer layers", "[plan][amp]") {
  // Type 1 takes twice as long; sums of 8 B at 0.5 B/s rule groups out. Six operators: 12 s on four, 12 s on two.
  test::Toy toy = equal_chain(6, 2, 8);
  for (test::ToyOperator& op : toy.operators) {
    op = {{3, 6}, 8, 1};
  }
  toy.types = {{}, {}};
  toy.devices = {{1, 8}, {0, 8}};
  const test::World world(toy);
  CHECK(test::cuts_of(std::get<Plan>(test::plan_of(world, "amp"))) == std::vector<int>{0, 2, 6});
}

TEST_CASE("replicas stand pipeline first", "[plan][amp]") {
  // Two operators of 12 kB with gradients and momentum, one to a device. Two stages of two replicas, 1.5 s each: 7
  // x 1.5 + 3 s, 2 x 0.5 s between them, where each sends its half, 4 s for 4 kB of gradients: 18.5 s. Two groups of
  // two: a pair that sums 500 B forwards, 8 x (1.5 + 0.5) s, and 4 s. One group of four: 8 (1.5 + 1.5) s.
  test::Toy toy = equal_chain(2, 4, 8);
  for (test::ToyOperator& op : toy.operators) {
    op = {{3}, 1000, 1000};
  }
  toy.types = {{14'500, 1}};
  toy.devices.assign(4, {0, 1000});
  test::World world(toy);
  world.problem.divisible_at_will = true;
  const Plan plan = std::get<Plan>(test::plan_of(world, "amp"));
  CHECK(plan.objective->value.value == near(18.5));
  REQUIRE(plan.stages.size() == 2);
  CHECK(plan.stages[0].devices == std::vector<DeviceId>{0, 2});
  CHECK(plan.stages[1].devices == std::vector<DeviceId>{1, 3});
}

TEST_CASE("pipelines too large to plan are named", "[plan][amp]") {
  // 4e7 cells are 6324 layers squared: with 6400 not even one stage is planned.
  const test::World world(equal_chain(6400, 1, 1));
  const PlanResult result = test::plan_of(world, "amp");
  REQUIRE(std::holds_alternative<Infeasible>(result));
  CHECK_THAT(std::get<Infeasible>(result).reason,
             Catch::Contains("pipelines of 1 and more stages were left out: too many cuts of 6400 layers"));
}

} // namespace
} // namespace stagecraft
