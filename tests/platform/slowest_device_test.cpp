// Who waits for all devices of a type waits for the slowest.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/platform/slowest_device.hpp"
#include "tests/catch.hpp"
#include "tests/platform/platforms.hpp"

namespace stagecraft {
namespace {

Platform with_devices(const std::vector<int>& types) {
  Platform platform;
  platform.types.resize(3);
  platform.types[0].name = "a";
  platform.types[1].name = "b";
  platform.types[2].name = "c";
  for (const int type : types) {
    platform.devices.push_back({"d", type, 0});
  }
  return platform;
}

TEST_CASE("the slowest of several devices of a type is as slow as the largest of so many draws", "[platform]") {
  const std::vector<SlowestDevice> slowest = slowest_devices(with_devices({0, 2, 0, 1, 2, 2}), 0.1);
  const double two = 1 / std::sqrt(std::acos(-1.0)); // standard deviations, tests/base/statistics_test.cpp
  REQUIRE(slowest.size() == 2);                      // "b" has a single one
  CHECK(slowest[0].type == "a");
  CHECK(slowest[0].devices == 2);
  CHECK(slowest[0].longer == Approx(1 + 0.1 * two));
  CHECK(slowest[1].type == "c");
  CHECK(slowest[1].devices == 3);
  CHECK(slowest[1].longer == Approx(1 + 0.1 * 1.5 * two));
  CHECK(slowest_devices(with_devices({0, 0}), 0).empty());
}

} // namespace
} // namespace stagecraft
