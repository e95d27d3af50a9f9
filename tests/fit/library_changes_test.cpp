// Sizes at which NCCL changes its protocol, from its published tuning.
// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/load_platform.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

#include "calibrate/fit/library_changes.hpp"

namespace stagecraft::fit {
namespace {

DeviceType shipped(const std::string& name) {
  return load_device_type(device_types_in(test::source_dir() / "platforms" / "devices")(name, {}));
}

MeasuredCollective row(const std::string& op, int devices, double bytes, double seconds) {
  MeasuredCollective one;
  one.op = op;
  one.devices = devices;
  one.size = Bytes{bytes};
  one.time.median = Seconds{seconds};
  return one;
}

TEST_CASE("an all-gather of A100 changes from LL to LL128 to Simple", "[fit]") {
  // Among four at 240 GB/s, 3/4 of the bytes over each port. LL: 6.6 + 3 * 0.6 us at 87.7 GB/s, LL128: 14 + 3 * 1.9 us
  // at 0.92 * 240 GB/s, Simple: 8.4 + 3 * 3.4 us at 240 GB/s. LL128 and Simple differ by 1.1 us at the start, in favour
  // of Simple, which is also the faster one: LL gives way to Simple at once.
  const double crossing = (18.6 - 8.4) * 1e-6 / (0.75 / 87.7e9 - 0.75 / 240e9);
  const std::vector<double> changes = library_changes(shipped("a100-sxm-80gb"), BytesPerSecond{240e9}, "all-gather", 4);
  REQUIRE(changes.size() == 1);
  CHECK(changes[0] == Approx(crossing));
  // Among eight, 7/8: Simple starts 4.9 us later than LL128, so all three have their turn.
  const std::vector<double> three = library_changes(shipped("a100-sxm-80gb"), BytesPerSecond{240e9}, "all-gather", 8);
  REQUIRE(three.size() == 2);
  CHECK(three[0] == Approx((27.3 - 10.8) * 1e-6 / (7.0 / 8 * (1 / 87.7e9 - 1 / (0.92 * 240e9)))));
  CHECK(three[1] == Approx((32.2 - 27.3) * 1e-6 / (7.0 / 8 * (1 / (0.92 * 240e9) - 1 / 240e9))));
}

TEST_CASE("what the tuning says nothing of has no changes", "[fit]") {
  const BytesPerSecond port{240e9};
  CHECK(library_changes(shipped("a100-sxm-80gb"), port, "all-to-all", 8).empty());
  CHECK(library_changes(shipped("mi300x-192gb"), port, "all-gather", 8).empty());
  CHECK(library_changes(shipped("a100-sxm-80gb"), BytesPerSecond{0}, "all-gather", 8).empty());
  CHECK(library_changes(shipped("a100-sxm-80gb"), port, "all-gather", 1).empty());
}

TEST_CASE("PCIe has no LL128", "[fit]") {
  // Two at 25 GB/s: LL 6.6 + 1.0 us at 12.5 GB/s, Simple 8.4 + 5.7 us.
  const std::vector<double> changes = library_changes(shipped("l40s-48gb"), BytesPerSecond{25e9}, "all-gather", 2);
  REQUIRE(changes.size() == 1);
  CHECK(changes[0] == Approx(6.5e-6 / (0.5 / 12.5e9 - 0.5 / 25e9)));
}

TEST_CASE("the port's bandwidth is the most that gathers and scatters show at their largest sizes", "[fit]") {
  CHECK(port_bandwidth({}).value == 0);
  CHECK(port_bandwidth({row("all-gather", 2, 1e6, 1e-3)}).value == 0);
  // 3/4 of 1 GB in 5 ms; a half of 1 GB in 5 ms; an all-reduce in the switch says nothing of a port.
  CHECK(port_bandwidth({row("all-gather", 4, 1e6, 1e-5), row("all-gather", 4, 1e9, 5e-3),
                        row("all-gather", 4, 1e9, 7e-3), row("all-gather", 4, 2e9, 10e-3),
                        row("reduce-scatter", 2, 1e9, 5e-3), row("reduce-scatter", 2, 2e9, 10e-3),
                        row("all-reduce", 2, 1e9, 1e-3), row("all-reduce", 2, 2e9, 2e-3)})
            .value == Approx(0.75e9 / 5e-3));
}

} // namespace
} // namespace stagecraft::fit
