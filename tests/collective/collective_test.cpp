// Closed forms of collectives, against the same traffic counted step by step and by hand.
// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/collective.hpp"
#include "tests/catch.hpp"
#include "tests/platform/platforms.hpp"

namespace stagecraft {
namespace {

using test::near;

Collective all_reduce(int ranks, Bytes bytes, const PathCost& path) {
  return {CollectiveKind::all_reduce, {ranks, path}, bytes};
}

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
    const Collective collective = all_reduce(ranks, Bytes{1000}, path);
    CHECK(seconds_of(collective).value == near(seconds));
    CHECK(traffic_of(collective).bytes.value == near(bytes));
    CHECK(traffic_of(collective).steps == 2 * (ranks - 1));
  }
}

TEST_CASE("a ring all-reduce by hand", "[cost][collective]") {
  // Four ranks, S = 800 B, B = 100 B/s, a = 0.5 s: 2 (n-1)/n S/B + 2 (n-1) a = 1.5 * 8 + 6 * 0.5.
  CHECK(seconds_of(all_reduce(4, Bytes{800}, {Seconds{0.5}, 0.01})).value == near(15.0));
  // Two ranks exchange halves, both ways: S/B + 2 a.
  CHECK(seconds_of(all_reduce(2, Bytes{800}, {Seconds{0.5}, 0.01})).value == near(9.0));
}

TEST_CASE("a broadcast by hand", "[cost][collective]") {
  // Four ranks, S = 800 B, B = 100 B/s, a = 0.5 s: S/B + (n-1) a.
  CHECK(seconds_of({CollectiveKind::broadcast, {4, {Seconds{0.5}, 0.01}}, Bytes{800}}).value == near(9.5));
}

TEST_CASE("one rank reduces nothing", "[cost][collective]") {
  const Collective alone = all_reduce(1, Bytes{1000}, {Seconds{1}, 1});
  CHECK(seconds_of(alone).value == 0);
  CHECK(traffic_of(alone).bytes.value == 0);
  CHECK(traffic_of(alone).steps == 0);
}

TEST_CASE("a ring is as fast as its slowest neighbours, and other pairs do not count", "[cost][collective]") {
  const Platform platform = test::platform_of(
      test::node_text("n", "devices: [{type: a, count: 4}], links: ["
                           "{kind: pcie-switch, bandwidth: 10 GB/s, latency: 1 us},"
                           "{kind: nvlink-pair, pairs: [[0, 1], [1, 2], [2, 3], [3, 0]], bandwidth: 5 GB/s, "
                           "latency: 8 us}]"));
  Router router(platform);
  const Group along = ring_of({0, 1, 2, 3}, router);
  CHECK(along.ranks == 4);
  CHECK(along.slowest.latency.value == near(8e-6));
  CHECK(along.slowest.seconds_per_byte == near(1 / 5e9));
  // 0 and 2 reach each other over the switch: two links of 1 us, at 10 GB/s.
  CHECK(ring_of({0, 2}, router).slowest.latency.value == near(2e-6));
  CHECK(ring_of({0, 2}, router).slowest.seconds_per_byte == near(1 / 10e9));
  CHECK(ring_of({3}, router).ranks == 1);
  CHECK(ring_of({3}, router).slowest.latency.value == 0);

  const PathCost worst = slowest_of({Seconds{1}, 0.5}, {Seconds{2}, 0.25});
  CHECK(worst.latency.value == 2);
  CHECK(worst.seconds_per_byte == 0.5);
}

} // namespace
} // namespace stagecraft
