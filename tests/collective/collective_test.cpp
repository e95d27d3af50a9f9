// The ring all-reduce in closed form.
// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/collective.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

using test::near;

TEST_CASE("a ring all-reduce step by step", "[cost][collective]") {
  // The buffer is cut in r pieces; r-1 steps reduce, r-1 gather, each sends one piece to the neighbour.
  const PathCost path{Seconds{0.25}, 1 / 10.0};
  for (const int ranks : {2, 3, 4, 7, 8, 64}) {
    double seconds = 0;
    double bytes = 0;
    for (int step = 0; step < 2 * (ranks - 1); ++step) {
      seconds += path.time(Bytes{1000.0 / ranks}).value;
      bytes += 1000.0 / ranks;
    }
    CHECK(ring_all_reduce_time(ranks, Bytes{1000}, path).value == near(seconds));
    CHECK(ring_all_reduce_bytes(ranks, Bytes{1000}).value == near(bytes));
    CHECK(ring_all_reduce_steps(ranks) == 2 * (ranks - 1));
  }
}

TEST_CASE("one rank reduces nothing", "[cost][collective]") {
  CHECK(ring_all_reduce_time(1, Bytes{1000}, {Seconds{1}, 1}).value == 0);
  CHECK(ring_all_reduce_bytes(1, Bytes{1000}).value == 0);
  CHECK(ring_all_reduce_steps(1) == 0);
}

} // namespace
} // namespace stagecraft
