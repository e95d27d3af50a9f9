// Passes that are one task, whose steps exchanges slow down: worked by hand.
// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/steps_beside.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

using test::near;

// Computes 4 s, begins an exchange, computes 4 s beside it, and 1 s when it has ended.
PassSteps one_exchange(double seconds) {
  PassSteps steps;
  steps.computations = {{Seconds{4}, 0}, {Seconds{4}, 0}, {Seconds{1}, 1}};
  steps.exchanges = {{0, {Work{.seconds = Seconds{seconds}}}}};
  return steps;
}

// Each flow takes half of the device's speed.
StepsBeside halved(const PassSteps& steps) {
  return {steps, TaskKind::backward, [](const Work&) { return BesideExchange{.matrix = 2, .other = 1}; }};
}

double seconds(const StepsBeside& steps, const std::vector<SlowedTime>& others, double scale = 1) {
  constexpr double kStart = 100;
  std::vector<SlowedTime> later;
  for (const SlowedTime& other : others) {
    later.push_back({kStart + other.begin, kStart + other.end, other.beside});
  }
  return steps.seconds(kStart, scale, later, 1e-12);
}

// Beside the exchange, from 4 to 7, 1.5 s are done; 2.5 s follow, and 1 s.
TEST_CASE("an exchange of a pass slows down what the pass computes beside it", "[replay][beside]") {
  const StepsBeside steps = halved(one_exchange(3));
  CHECK(steps.plain() == near(9));
  CHECK(seconds(steps, {}) == near(10.5));
  CHECK(seconds(steps, {}, 10) == near(105));
}

// The exchange ends at 14 either way; what is computed beside it ends at 8, or at 12.
TEST_CASE("a pass that waits for its exchange loses nothing to it", "[replay][beside]") {
  const StepsBeside steps = halved(one_exchange(10));
  CHECK(steps.plain() == near(15));
  CHECK(seconds(steps, {}) == near(15));
}

TEST_CASE("other exchanges slow down the steps that they meet", "[replay][beside]") {
  const StepsBeside steps = halved(one_exchange(3));
  const BesideExchange twice{.matrix = 2, .other = 1}, thrice{.matrix = 3, .other = 1};
  CHECK(seconds(steps, {{0, 2, twice}}) == near(11.5));                // 1 s of the first 4 s is lost
  CHECK(seconds(steps, {{4, 7, twice}}) == near(10.5));                // one counts, beside the pass's own
  CHECK(seconds(steps, {{5, 6, thrice}}) == near(10.5 + 1. / 6));      // 1/3 s in place of 1/2 s
  CHECK(seconds(steps, {{10, 12, thrice}}) == near(11.5));             // of the last 1 s a half is left at 10
  CHECK(seconds(steps, {{0, 2, twice}, {11, 20, twice}}) == near(12)); // the last 0.5 s takes 1 s
  CHECK(seconds(steps, {{10.5, 20, twice}}) == near(10.5));            // it is over
  // While the pass waits for its exchange, from 12 to 14, it computes nothing that others could slow down.
  CHECK(seconds(halved(one_exchange(10)), {{12, 14, thrice}}) == near(15));
}

// The second flow begins with the first, and goes on for 1 s; the next exchange follows both.
TEST_CASE("flows of an exchange, and exchanges, follow one another or do not", "[replay][beside]") {
  PassSteps steps = one_exchange(2);
  steps.exchanges.front().flows.push_back(Work{.seconds = Seconds{3}});
  CHECK(seconds(halved(steps), {}) == near(10.5));
  steps.exchanges.push_back({0, {Work{.seconds = Seconds{1}}}}); // from 7 to 8
  steps.computations.back().needs = 2;
  CHECK(seconds(halved(steps), {}) == near(11)); // 2 s are done at 8
}

// A step that memory bounds takes the other factor.
TEST_CASE("passes take the factor of products, steps of the optimiser the other", "[replay][beside]") {
  const auto beside = [](const Work&) { return BesideExchange{.matrix = 1, .other = 2}; };
  CHECK(StepsBeside(one_exchange(3), TaskKind::forward, beside).seconds(0, 1, {}, 0) == near(9));
  CHECK(StepsBeside(one_exchange(3), TaskKind::optimizer, beside).seconds(0, 1, {}, 0) == near(10.5));
}

} // namespace
} // namespace stagecraft
