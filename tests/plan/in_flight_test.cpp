// What a schedule holds is worked out once for each question, and two answers can be compared.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/estimate/in_flight.hpp"
#include "tests/catch.hpp"

namespace stagecraft::test {
namespace {

TEST_CASE("a rule is asked once for each stage of each number of stages", "[plan][in-flight]") {
  int asked = 0;
  const InFlight held([&](int stage, int stages) {
    ++asked;
    return static_cast<double>(stages - stage);
  });
  const InFlight copy = held;
  CHECK(held(1, 4) == 3);
  CHECK(held(1, 4) == 3);
  CHECK(copy(1, 4) == 3); // copies share the answers
  CHECK(asked == 1);
  CHECK(held(1, 3) == 2);
  CHECK(asked == 2);
  CHECK(held.unasked()(1, 4) == 3);
  CHECK(asked == 3);
}

TEST_CASE("answers are alike where those that were asked for are", "[plan][in-flight]") {
  const auto holding = [](double first, double second) {
    return InFlight([=](int stage, int) { return stage == 0 ? first : second; });
  };
  const InFlight known = holding(1, 2);
  CHECK(holding(5, 6).answers_like(known)); // nobody asked
  CHECK(known(0, 2) == 1);
  CHECK(holding(1, 6).answers_like(known));
  CHECK_FALSE(holding(5, 2).answers_like(known));
  CHECK(known(1, 2) == 2);
  CHECK_FALSE(holding(1, 6).answers_like(known));

  const InFlight sent = InFlight::answered(known.answers());
  CHECK(holding(1, 2).answers_like(sent));
  CHECK_FALSE(holding(5, 2).answers_like(sent));
}

} // namespace
} // namespace stagecraft::test
