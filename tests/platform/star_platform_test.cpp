// The star platform of the command line's --devices N --bandwidth B.
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "sim/platform/load_platform.hpp"
#include "sim/platform/route.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

using test::near;

TEST_CASE("between two devices of a star the bandwidth and the latency count once", "[platform][star]") {
  DeviceType type;
  type.name = "v100";
  const Platform platform = make_star_platform(type, 3, BytesPerSecond{2e9}, Seconds{1e-3});
  CHECK(platform.types == std::vector{type});
  REQUIRE(platform.devices.size() == 3);
  CHECK(platform.links.size() == 6);
  Router router(platform);
  for (DeviceId from = 0; from < 3; ++from) {
    CHECK(platform.vertices[static_cast<size_t>(from)].index == from);
    for (DeviceId to = 0; to < 3; ++to) {
      const double expected = from == to ? 0 : 1e-3 + 4e9 / 2e9;
      CHECK(router.cost(from, to).time(Bytes{4e9}).value == near(expected));
    }
  }
}

TEST_CASE("a star of two types: the slower end's link decides", "[platform][star]") {
  DeviceType fast;
  fast.name = "fast";
  DeviceType slow;
  slow.name = "slow";
  const Platform platform =
      make_star_platform({{fast, 2, BytesPerSecond{4}}, {slow, 1, BytesPerSecond{1}}}, Seconds{0});
  CHECK(platform.name == "2 x fast + 1 x slow");
  REQUIRE(platform.devices.size() == 3);
  CHECK(platform.devices[1].name == "node/fast-1");
  CHECK(platform.devices[2].name == "node/slow-0");
  CHECK(platform.type_of(2) == slow);
  Router router(platform);
  CHECK(router.cost(0, 1).time(Bytes{4}).value == near(1));
  CHECK(router.cost(0, 2).time(Bytes{4}).value == near(4));
  CHECK(router.cost(2, 1).time(Bytes{4}).value == near(4));
}

TEST_CASE("over an infinite bandwidth a transfer takes only the latency", "[platform][star]") {
  const BytesPerSecond infinite{std::numeric_limits<double>::infinity()};
  const Platform platform = make_star_platform({}, 2, infinite, Seconds{0.5});
  Router router(platform);
  CHECK(router.cost(0, 1).time(Bytes{1e12}).value == near(0.5));
}

TEST_CASE("a star of no devices or no bandwidth is a bug of the caller", "[platform][star]") {
  CHECK_THROWS_AS(make_star_platform(std::vector<StarDevices>{}, Seconds{0}), std::logic_error);
  CHECK_THROWS_AS(make_star_platform({}, 0, BytesPerSecond{1}, Seconds{0}), std::logic_error);
  CHECK_THROWS_AS(make_star_platform({}, 1, BytesPerSecond{0}, Seconds{0}), std::logic_error);
  CHECK_THROWS_AS(make_star_platform({}, 1, BytesPerSecond{1}, Seconds{-1}), std::logic_error);
}

} // namespace
} // namespace stagecraft
