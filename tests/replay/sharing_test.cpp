// Max-min sharing of links, by hand.
// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.hpp"
#include "tests/replay/flows.hpp"

namespace stagecraft {
namespace {

using test::arrivals;
using test::kInfinite;

void check_arrivals(const std::vector<double>& bandwidths, const std::vector<test::Flow>& flows,
                    const std::vector<double>& expected) {
  const std::vector<double> got = arrivals(bandwidths, flows);
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i] == test::near(expected[i]));
  }
}

TEST_CASE("a lone flow has the bandwidth of its narrowest link", "[replay][sharing]") {
  check_arrivals({10}, {{100, {{0}}}}, {10});
  check_arrivals({10, 4, 20}, {{100, {{0, 1, 2}}}}, {25});
}

TEST_CASE("n flows on one link get an nth each", "[replay][sharing]") {
  check_arrivals({10}, {{100, {{0}}}, {100, {{0}}}}, {20, 20});
  for (const int n : {3, 7, 20}) {
    check_arrivals({10}, std::vector<test::Flow>(n, {100, {{0}}}), std::vector<double>(n, 10.0 * n));
  }
}

TEST_CASE("the analytic engine gives every flow its links for itself", "[replay][sharing]") {
  CHECK(arrivals({10}, {{100, {{0}}}, {100, {{0}}}}, replay_analytic) == std::vector<double>{10, 10});
}

TEST_CASE("flows on different links do not disturb each other", "[replay][sharing]") {
  check_arrivals({10, 20}, {{100, {{0}}}, {100, {{1}}}}, {10, 5});
}

TEST_CASE("the other flows share the bandwidth that a finished flow leaves", "[replay][sharing]") {
  // 5 B/s each until the first has its 50 B at 10; the second has 50 of 100 left: 5 s more.
  check_arrivals({10}, {{50, {{0}}}, {100, {{0}}}}, {10, 15});
}

TEST_CASE("a long flow over two links beside a short one on each", "[replay][sharing]") {
  // All get 5 B/s. C (30 B) ends at 6; A is still held to 5 by B on the first link and ends at 10 (50 B); B has 50 of
  // 100 left then, alone: 15.
  check_arrivals({10, 10}, {{50, {{0, 1}}}, {100, {{0}}}, {30, {{1}}}}, {10, 15, 6});
  // A wider second link: A and B 5 B/s by the first, C all that A leaves of 30: 25.
  check_arrivals({10, 30}, {{100, {{0, 1}}}, {100, {{0}}}, {100, {{1}}}}, {20, 20, 4});
}

TEST_CASE("a flow that starts later takes its half from then on", "[replay][sharing]") {
  // The first has 40 of 100 B at 4, then 5 B/s: 16. The second has 60 by then, 40 more alone: 20.
  check_arrivals({10}, {{100, {{0}}}, {100, {{0}}, 4}}, {16, 20});
}

TEST_CASE("latency is paid before the flow and does not tilt shares", "[replay][sharing]") {
  // 100 MB each into 100 GB/s. The first flows alone from 1 us to 5.5 us, 450 kB; then 50 GB/s each, so that it ends
  // 99.55 MB / 50 GB/s later, at 1.9965 ms; the second has 450 kB left then: 2.001 ms. Both last 1.9955 ms.
  check_arrivals({100e9}, {{1e8, {{0}}, 0, 1e-6}, {1e8, {{0}}, 0, 5.5e-6}}, {1.9965e-3, 2.001e-3});
  const auto got = arrivals({100e9}, {{1e8, {{0}}, 0, 1e-6}, {1e8, {{0}}, 0, 5.5e-6}});
  CHECK(got[0] - 1e-6 == Approx(1.9955e-3).epsilon(1e-9));
  CHECK(got[1] - 5.5e-6 == Approx(1.9955e-3).epsilon(1e-9));
}

TEST_CASE("a transfer of no bytes takes its latency and no bandwidth", "[replay][sharing]") {
  check_arrivals({10}, {{0, {{0}}, 0, 3}, {100, {{0}}}}, {3, 10});
  check_arrivals({10}, {{0, {{0}}}}, {0});
}

TEST_CASE("one byte is a flow", "[replay][sharing]") { check_arrivals({10}, {{1, {{0}}, 0, 3}}, {3.1}); }

TEST_CASE("over infinite bandwidth only the latency is left", "[replay][sharing]") {
  check_arrivals({kInfinite}, {{1e15, {{0}}, 0, 2}, {1e15, {{0}}, 1, 2}}, {2, 3});
  check_arrivals({kInfinite, 10}, {{100, {{0, 1}}}}, {10}); // one finite link on the way
}

TEST_CASE("legs follow one another: stored, then forwarded", "[replay][sharing]") {
  check_arrivals({10, 20}, {{100, {{0}, {1}}, 0, 1}}, {1 + 10 + 1 + 5});
  CHECK(arrivals({10, 20}, {{100, {{0}, {1}}, 0, 1}}, replay_analytic).front() == test::near(17));
  // The second flow uses the first link alone while the first flow is on its second leg.
  check_arrivals({10, 20}, {{100, {{0}, {1}}}, {100, {{0}}, 10}}, {15, 20});
}

TEST_CASE("times from nanoseconds to hours are right beside each other", "[replay][sharing]") {
  check_arrivals({1e9}, {{1, {{0}}, 3600, 1e-9}, {1e9, {{0}}, 0}}, {3600 + 2e-9, 1});
  const auto got = arrivals({1e9}, {{10, {{0}}, 0, 1e-9}});
  CHECK(got[0] == Approx(11e-9).epsilon(1e-6));
}

} // namespace
} // namespace stagecraft
