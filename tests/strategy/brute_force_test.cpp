// The planners that promise the least bottleneck, as their paper or as we count it, or the least max-load, against the
// oracle, on 10 000 random graphs of up to nine operators, with devices of up to three types, links and memory.
// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.hpp"
#include "tests/plan/random_toys.hpp"
#include "tests/strategy/brute_force.hpp"

namespace stagecraft {
namespace {

constexpr int kGraphs = 3334; // and three kinds of limits

struct Tally {
  int feasible = 0, infeasible = 0;
};

void check_against_oracle(const test::World& world, std::string_view strategy, std::optional<double> expected,
                          Tally& tally) {
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
  if (strategy == "optimal") {
    CHECK(world.bottleneck_of(*plan).value == test::near(*expected));
  }
  CHECK(plan->objective->value.value == test::near(*expected));
}

Tally check_random(unsigned seed, const test::RandomToyOptions& options) {
  std::mt19937 random(seed);
  Tally tally;
  for (int n = 0; n < kGraphs; ++n) {
    const test::World world(test::random_toy(random, options));
    CAPTURE(n);
    const auto bottleneck = test::BruteForce(world.toy).best();
    check_against_oracle(world, "optimal", bottleneck, tally);
    check_against_oracle(world, "antichain", test::BruteForce(world.toy, test::Least::augmented).best(), tally);
    check_against_oracle(world, "ideal", test::BruteForce(world.toy, test::Least::max_load).best(), tally);
  }
  return tally;
}

TEST_CASE("the oracle gives a hand-made answer", "[plan][oracle]") {
  // A chain 2, 3, 4 with tensors of 5 and 1 B at 1 B/s: two devices cut after the second: max(5, 4, 2 x 1) = 5.
  test::Toy toy;
  toy.operators = {{{2}, 5}, {{3}, 1}, {{4}, 7}};
  toy.edges = test::chain_edges(3);
  toy.devices = {{0, 1, 0}, {0, 1, 0}};
  CHECK(test::BruteForce(toy).best() == 5);
  // 12 B per parameter (weight, gradient, momentum) do not fit beside each other: the cut moves, max(2, 7, 10).
  toy.operators[0].parameters = toy.operators[1].parameters = 100;
  toy.types[0].memory = 12 * 150;
  CHECK(test::BruteForce(toy).best() == 10);
  // In the order given, either device may be left out; a chain's antichains have one member, so cuts are the same.
  CHECK(test::BruteForce(toy, test::Least::augmented).best() == 10);
  // Max-load adds the tensors, there and back: {0, 1} | {2} 5 + 2 against 4 + 2, all on one device 9.
  toy.operators[0].parameters = toy.operators[1].parameters = 0;
  CHECK(test::BruteForce(toy, test::Least::max_load).best() == 7);
  toy.operators[0].parameters = toy.operators[1].parameters = 100;
  toy.types[0].memory = 12 * 99;
  CHECK(test::BruteForce(toy).best() == std::nullopt);
}

TEST_CASE("optimal, antichain and ideal equal the oracle without memory limits", "[plan][oracle]") {
  const Tally tally = check_random(11, {.operators = 9});
  CHECK(tally.feasible == 3 * kGraphs);
}

TEST_CASE("optimal, antichain and ideal equal the oracle where kernels are missing", "[plan][oracle]") {
  const Tally tally = check_random(12, {.operators = 9, .kernels = true});
  CHECK(tally.feasible > kGraphs);
  CHECK(tally.infeasible > 10);
}

TEST_CASE("optimal, antichain and ideal equal the oracle where memory binds", "[plan][oracle]") {
  const Tally tally = check_random(13, {.operators = 9, .memory = true});
  CHECK(tally.feasible > kGraphs / 2);
  CHECK(tally.infeasible > 10);
}

} // namespace
} // namespace stagecraft
