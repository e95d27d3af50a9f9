// data-parallel: shares by speed in whole samples, the samples left over to the largest fractions.
// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "tests/catch.hpp"
#include "tests/plan/problems.hpp"

namespace stagecraft {
namespace {

using Doubles = std::vector<double>;

// Whole samples of a batch of `samples` in one micro-batch, for devices that take so many seconds per sample.
Doubles samples_of(const Doubles& seconds, int samples) {
  test::Toy toy;
  toy.operators = {{seconds}};
  toy.types.assign(seconds.size(), {});
  toy.devices.clear();
  for (std::size_t type = 0; type < seconds.size(); ++type) {
    toy.devices.push_back({static_cast<int>(type)});
  }
  const test::World world(toy);
  Training training;
  training.global_batch = samples;
  const Problem problem = make_problem(world.model, world.platform, world.cost, training, world.problem.router, 1);
  PlanRequest request{.problem = problem, .devices = world.request().devices, .in_flight = [](int, int) { return 1; }};
  const Plan plan = std::get<Plan>(make_plan(test::strategy_row("data-parallel"), request));
  Doubles whole(seconds.size(), 0.0);
  for (std::size_t i = 0; i < plan.stages[0].devices.size(); ++i) {
    whole[plan.stages[0].devices[i]] = plan.stages[0].share(i) * samples;
  }
  return whole;
}

void check_shares(const Doubles& seconds, int samples, const Doubles& expected) {
  const Doubles got = samples_of(seconds, samples);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(got[i] == test::near(expected[i]));
  }
}

TEST_CASE("shares are floor(B s_d / sum s), what is left goes to the largest fractions", "[plan][data-parallel]") {
  check_shares({1, 1}, 8, {4, 4});
  check_shares({2, 1}, 9, {3, 6});
  check_shares({2, 1}, 10, {3, 7});       // 3.33 and 6.67
  check_shares({2, 1}, 11, {4, 7});       // 3.67 and 7.33
  check_shares({1, 1, 1}, 10, {4, 3, 3}); // a tie: the lower index
  check_shares({1, 1, 1}, 11, {4, 4, 3});
  check_shares({4, 2, 1}, 10, {1, 3, 6}); // 1.43, 2.86, 5.71: floors 1, 2, 5; two left for 0.86 and 0.71
}

TEST_CASE("a device with no whole sample is left out", "[plan][data-parallel]") {
  check_shares({1, 1, 1}, 2, {1, 1, 0});
  check_shares({100, 1}, 2, {0, 2});
}

TEST_CASE("shares are whole, add up to the batch, and miss the exact ones by less than one", "[plan][data-parallel]") {
  for (int samples = 1; samples <= 40; ++samples) {
    const Doubles seconds = {3, 5, 2, 7};
    const Doubles got = samples_of(seconds, samples);
    CHECK(std::accumulate(got.begin(), got.end(), 0.0) == test::near(samples));
    double speed = 0;
    for (const double one : seconds) {
      speed += 1 / one;
    }
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      CHECK(std::abs(got[i] - samples / seconds[i] / speed) < 1);
      CHECK(got[i] == test::near(std::round(got[i])));
    }
  }
}

} // namespace
} // namespace stagecraft
