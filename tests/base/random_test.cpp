// Random numbers: the generator's published output, and distributions of our own.
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "sim/base/random.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

// The first round of pcg32-demo (O'Neill's pcg-c-basic), seeded with (42, 54).
TEST_CASE("PCG32 gives its published numbers", "[base][random]") {
  Random random(42, 54);
  for (const std::uint32_t expected : {0xa15c02b7U, 0x7b47f409U, 0xba1d3330U, 0x83d2f293U, 0xbfa4784bU, 0xcbed606eU}) {
    CHECK(random.next() == expected);
  }
}

TEST_CASE("numbers below a bound are all drawn, about equally often", "[base][random]") {
  Random random(1);
  std::array<int, 6> count{};
  for (int i = 0; i < 6000; ++i) {
    ++count.at(random.below(6));
  }
  for (const int times : count) { // four standard deviations, sqrt(6000 * 5/36), around 1000
    CHECK(times > 1000 - 116);
    CHECK(times < 1000 + 116);
  }
  CHECK(random.below(1) == 0);
}

TEST_CASE("unit numbers lie between 0 and 1", "[base][random]") {
  Random random(7);
  double sum = 0;
  for (int i = 0; i < 4800; ++i) {
    const double drawn = random.unit();
    REQUIRE((drawn >= 0 && drawn < 1));
    sum += drawn;
  }
  CHECK(sum == Approx(2400).margin(4 * 20)); // variance 1/12 each
}

} // namespace
} // namespace stagecraft
