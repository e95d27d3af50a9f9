// A candidate must be better by more than a rounding error to replace the incumbent.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/improves.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

TEST_CASE("a value improves where it is better by more than a billionth", "[base][improves]") {
  CHECK(improves(1, 2));
  CHECK(improves(1 - 2e-9, 1));
  CHECK(improves(1e-12 * (1 - 2e-9), 1e-12)); // a share, whatever the unit
  CHECK_FALSE(improves(2, 1));
}

TEST_CASE("between equal values the incumbent stays", "[base][improves]") {
  CHECK_FALSE(improves(1, 1));
  CHECK_FALSE(improves(0, 0));
  CHECK_FALSE(improves(1 - 0.5e-9, 1));
  CHECK_FALSE(improves(0.3, 0.1 + 0.2)); // less, but only in the last bit
}

TEST_CASE("any finite value improves on infinity", "[base][improves]") {
  CHECK(improves(1e300, kInfinity));
  CHECK(improves(0, kInfinity));
  CHECK_FALSE(improves(kInfinity, kInfinity));
  CHECK_FALSE(improves(kInfinity, 1));
}

} // namespace
} // namespace stagecraft
