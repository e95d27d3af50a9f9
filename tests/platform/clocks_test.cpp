// Devices under a power cap: the law of clocks, the type under a cap, and caps in platform files.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/format/yaml.hpp"
#include "sim/platform/clocks.hpp"
#include "tests/catch.hpp"
#include "tests/platform/platforms.hpp"

namespace stagecraft {
namespace {

using test::near;

// Half the voltage's range is below the knee: v = 0.6 up to half of the clock, then 0.8 c + 0.2.
constexpr Clocks kClocks{.fixed = Watts{20}, .full = Watts{120}, .knee = 0.5, .voltage = 0.6, .memory_clock = 0.75};

TEST_CASE("dynamic power goes with the clock and with the square of the voltage", "[platform][power]") {
  CHECK(kClocks.power(1).value == near(120.0));
  CHECK(kClocks.power(0.75).value == near(20 + 100 * 0.75 * 0.8 * 0.8));
  CHECK(kClocks.power(0.5).value == near(20 + 100 * 0.5 * 0.36));
  CHECK(kClocks.power(0.25).value == near(20 + 100 * 0.25 * 0.36));
}

TEST_CASE("a limit gives the highest clock that draws no more", "[platform][power]") {
  for (const double clock : {0.1, 0.25, 0.5, 0.51, 0.75, 0.99, 1.0}) {
    CHECK(kClocks.clock_under(kClocks.power(clock)) == near(clock));
  }
  CHECK(kClocks.clock_under(Watts{500}) == 1);
  CHECK(kClocks.clock_under(Watts{20}) == 0);
  constexpr Clocks flat{.fixed = Watts{20}, .full = Watts{120}, .knee = 1, .voltage = 1};
  CHECK(flat.clock_under(Watts{70}) == near(0.5)); // one voltage at all clocks: power is a straight line
}

// A device of 100 TFLOP/s and 1 TB/s that draws up to 68 W, as its clocks do at 0.75.
DeviceType capped_card() {
  return load_device_type(yaml::parse("name: card\nvendor: any\norigin: made-up\nmemory: 16 GiB\n"
                                      "memory_bandwidth: 1 TB/s\nlaunch_overhead: 1 us\nvector: 10 TFLOP/s\n"
                                      "peak: {fp32: 100 TFLOP/s}\n"
                                      "power: {idle: 10 W, busy: 68 W, waiting: 50 W, clocks: {fixed: 20 W, "
                                      "full: 120 W, knee: 0.5, voltage: 0.6, memory_clock: 0.75}}\n",
                                      "card.yaml"));
}

TEST_CASE("under a cap arithmetic is as slow as its clock, memory only below the clock that it needs",
          "[platform][power]") {
  const DeviceType whole = capped_card();
  const DeviceType slow = capped(whole, Watts{38}); // at 0.5, of 0.75 that 68 W allow
  CHECK(slow.name == "card-38w");
  CHECK(slow.rate(KernelKind::matmul, Precision::fp32)->value == near(100e12 * 0.5 / 0.75));
  CHECK(slow.rate(KernelKind::elementwise, Precision::fp32)->value == near(10e12 * 0.5 / 0.75));
  CHECK(slow.memory_bandwidth.value == near(1e12 * 0.5 / 0.75)); // at 0.75 it was just fast enough
  CHECK(slow.peak == whole.peak);
  CHECK(slow.busy == Watts{38});
  CHECK(slow.waiting_power() == Watts{38});
  CHECK(slow.idle == Watts{10});
  CHECK(capped(whole, Watts{68}) == whole);
  CHECK(capped(whole, Watts{67.9}).busy == Watts{67.9});

  DeviceType roomy = whole;
  roomy.clocks->memory_clock = 0.4;
  CHECK(capped(roomy, Watts{38}).memory_bandwidth == whole.memory_bandwidth);
}

TEST_CASE("a type that states no clocks has the usual ones", "[platform][power]") {
  DeviceType plain = capped_card();
  plain.clocks.reset();
  const Clocks usual = usual_clocks(plain);
  CHECK(usual.full == plain.busy);
  CHECK(usual.fixed.value == near(68 * 0.2));
  CHECK(capped(plain, Watts{40}).rate(KernelKind::matmul, Precision::fp32)->value ==
        near(100e12 * usual.clock_under(Watts{40})));
  CHECK(least_cap(plain) == usual.power(0.1));
}

// A platform of two nodes of a T4, which draws 70 W.
Platform two_t4(const std::string& whole, const std::string& of_second) {
  const std::string host = "host: {cores: 8, core_speed: 32 GFLOP/s, memory: 64 GiB, memory_bandwidth: 100 GB/s, "
                           "disk_bandwidth: 1 GB/s, power: {idle: 90 W, core_busy: 6 W, core_spin: 3 W}}";
  const std::string links = "links: [{kind: host-link, bandwidth: 12 GB/s, latency: 2.5 us}]";
  return load_platform(yaml::parse("name: two\n" + whole + "nodes:\n  - {name: a, " + host +
                                       ", devices: [{type: t4-16gb}], " + links + "}\n  - {name: b, " + host +
                                       ", devices: [{type: t4-16gb" + of_second + "}], " + links +
                                       "}\nnetwork: {topology: switch, bandwidth: 1 GB/s, latency: 1 us}\n",
                                   "two.yaml"),
                       test::shipped_types());
}

TEST_CASE("a cap holds for the whole platform or for an entry's devices, which then are a type of their own",
          "[platform][power]") {
  const auto names = [](const Platform& platform) {
    std::vector<std::string> found;
    for (const Device& device : platform.devices) {
      found.push_back(platform.types[static_cast<std::size_t>(device.type)].name);
    }
    return found;
  };
  using Names = std::vector<std::string>;
  CHECK(names(two_t4("", "")) == Names{"t4-16gb", "t4-16gb"});
  CHECK(names(two_t4("", ", power_cap: 50 W")) == Names{"t4-16gb", "t4-16gb-50w"});
  const Platform both = two_t4("power_cap: 60 W\n", ", power_cap: 50 W");
  CHECK(names(both) == Names{"t4-16gb-60w", "t4-16gb-50w"});
  CHECK(both.types.size() == 2); // the type without a cap is on no device
  CHECK(names(two_t4("power_cap: 1 kW\n", "")) == Names{"t4-16gb", "t4-16gb"});
}

TEST_CASE("caps that no clock reaches are refused with the least that is allowed", "[platform][power][bad-input]") {
  CHECK_THROWS_WITH(two_t4("power_cap: 5 W\n", ""),
                    Catch::StartsWith("two.yaml:2:12: 'power_cap' of 5.000 W on 't4-16gb'; allowed: ") &&
                        Catch::Contains("a tenth of its highest clock, or more"));
  CHECK_THROWS_WITH(two_t4("power_cap: 5 J\n", ""), Catch::Contains("two.yaml:2:12"));
  CHECK_THROWS_WITH(load_device_type(yaml::parse(
                        "name: card\nvendor: any\norigin: made-up\nmemory: 16 GiB\nmemory_bandwidth: 1 TB/s\n"
                        "launch_overhead: 1 us\nvector: 10 TFLOP/s\npeak: {fp32: 100 TFLOP/s}\n"
                        "power: {idle: 10 W, busy: 68 W, clocks: {fixed: 70 W}}\n",
                        "card.yaml")),
                    Catch::Contains("card.yaml:9:") && Catch::Contains("'fixed' is not below 'busy' and 'full'"));
}

} // namespace
} // namespace stagecraft
