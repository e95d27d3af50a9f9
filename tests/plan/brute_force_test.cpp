// The planners that promise the least bottleneck against the oracle, on random graphs, devices, links and memory.
// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.hpp"
#include "tests/plan/brute_force.hpp"
#include "tests/plan/random_toys.hpp"

namespace stagecraft {
namespace {

constexpr int kGraphs = 500;

struct Tally {
  int feasible = 0, infeasible = 0;
};

void check_against_oracle(const test::Toy& toy, std::string_view strategy, Tally& tally) {
  const auto expected = test::BruteForce(toy, false).best();
  const test::World world(toy);
  const PlanResult got = test::plan_of(world, strategy);
  const Plan* plan = std::get_if<Plan>(&got);
  if (!expected) {
    ++tally.infeasible;
    if (plan != nullptr) {
      FAIL_CHECK(strategy << " finds a plan where none can be");
    }
    return;
  }
  ++tally.feasible;
  if (plan == nullptr) {
    FAIL_CHECK(strategy << " finds no plan; the best takes " << *expected << "; " << std::get<Infeasible>(got).reason);
    return;
  }
  CHECK(world.bottleneck_of(*plan).value == test::near(*expected));
  CHECK(plan->objective->value.value == test::near(*expected));
}

Tally check_random(unsigned seed, const test::RandomToyOptions& options) {
  std::mt19937 random(seed);
  Tally tally;
  for (int n = 0; n < kGraphs; ++n) {
    const test::Toy toy = test::random_toy(random, options);
    CAPTURE(n);
    check_against_oracle(toy, "optimal", tally);
    check_against_oracle(toy, "antichain", tally);
  }
  return tally;
}

TEST_CASE("the oracle gives a hand-made answer", "[plan][oracle]") {
  // A chain 2, 3, 4 with tensors of 5 and 1 B at 1 B/s: two devices cut after the second: max(5, 4, 2 x 1) = 5.
  test::Toy toy;
  toy.operators = {{{2}, 5}, {{3}, 1}, {{4}, 7}};
  toy.edges = test::chain_edges(3);
  toy.devices = {{0, 1, 0}, {0, 1, 0}};
  CHECK(test::BruteForce(toy, false).best() == 5);
  // 12 B per parameter (weight, gradient, momentum) do not fit beside each other: the cut moves, max(2, 7, 10).
  toy.operators[0].parameters = toy.operators[1].parameters = 100;
  toy.types[0].memory = 12 * 150;
  CHECK(test::BruteForce(toy, false).best() == 10);
  toy.types[0].memory = 12 * 99;
  CHECK(test::BruteForce(toy, false).best() == std::nullopt);
}

TEST_CASE("optimal and antichain equal the oracle without memory limits", "[plan][oracle]") {
  const Tally tally = check_random(11, {});
  CHECK(tally.feasible == 2 * kGraphs);
}

TEST_CASE("optimal and antichain equal the oracle where kernels lack", "[plan][oracle]") {
  const Tally tally = check_random(12, {.kernels = true});
  CHECK(tally.feasible > kGraphs);
  CHECK(tally.infeasible > 10);
}

TEST_CASE("optimal and antichain equal the oracle where memory binds", "[plan][oracle]") {
  const Tally tally = check_random(13, {.memory = true});
  CHECK(tally.feasible > kGraphs / 2);
  CHECK(tally.infeasible > 10);
}

} // namespace
} // namespace stagecraft
