// What DeepEP's kernels send over each tier: bytes from copies of a token, times as measured where they were.
// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/algorithm.hpp"
#include "sim/collective/dispatch.hpp"
#include "sim/platform/fits/kernel_fits.hpp"
#include "tests/catch.hpp"
#include "tests/collective/clusters.hpp"

namespace stagecraft {
namespace {

using test::cluster;
using test::first_devices;
using test::near;

// Two copies of a token leave through the NIC, three through the port.
DispatchTraffic traffic() {
  return {.between = 2, .inside = 3, .dispatched = Bytes{1000}, .combined = Bytes{2000}, .processors = 20};
}

Flows flows_among(const Platform& platform, int devices, CollectiveKind kind, const DispatchTraffic& tokens) {
  Router router(platform);
  return dispatch_flows(kind, map_ranks(first_devices(devices), router), router, tokens);
}

TEST_CASE("copies of tokens cross the network and, beside it, the ports", "[collective][dispatch]") {
  // Each of four ranks has 1 GB of tokens: 2 GB through a NIC of 1 GB/s, 3 GB through a port of 10 GB/s.
  const Flows flows = flows_among(cluster({2, 2}), 4, CollectiveKind::dispatch, traffic());
  REQUIRE(flows.size() == 2);
  CHECK_FALSE(flows[0].beside);
  CHECK(flows[1].beside);
  const Bytes tokens{1e9};
  CHECK((flows[0].time(tokens) - flows[0].leg.latency).value == near(2.0));
  CHECK((flows[1].time(tokens) - flows[1].leg.latency).value == near(0.3));
  CHECK(seconds_of(flows, tokens) == flows[0].time(tokens));
  CHECK(latency_of(flows, tokens) == flows[0].leg.latency);
}

TEST_CASE("the copies of three nodes are shared by the ways to the other two", "[collective][dispatch]") {
  const Flows flows = flows_among(cluster({3, 2}), 6, CollectiveKind::combine, traffic());
  CHECK((flows[0].time(Bytes{1e9}) - flows[0].leg.latency).value == near(2.0));
}

TEST_CASE("the slower tier holds up the whole", "[collective][dispatch]") {
  DispatchTraffic tokens = traffic();
  tokens.between = 0.2; // 0.2 s, the ports 0.3 s
  const Flows flows = flows_among(cluster({2, 2}), 4, CollectiveKind::dispatch, tokens);
  CHECK(seconds_of(flows, Bytes{1e9}) == flows[1].time(Bytes{1e9}));
}

TEST_CASE("one tier alone where ranks are on one node, or each on its own", "[collective][dispatch]") {
  const Flows inside = flows_among(cluster({1, 4}), 4, CollectiveKind::dispatch, traffic());
  REQUIRE(inside.size() == 1);
  CHECK((inside[0].time(Bytes{1e9}) - inside[0].leg.latency).value == near(0.3));
  const Flows apart = flows_among(cluster({4, 1}), 4, CollectiveKind::dispatch, traffic());
  REQUIRE(apart.size() == 1);
  CHECK((apart[0].time(Bytes{1e9}) - apart[0].leg.latency).value == near(2.0));
}

// The cluster's devices with times of these kernels, measured through NICs of this bandwidth.
Platform measured(double nic) {
  Platform platform = cluster({2, 2});
  auto fits = std::make_shared<KernelFits>();
  fits->dispatches = {{.op = "dispatch",
                       .nodes = 2,
                       .processors = 20,
                       .line = {.start = Seconds{1e-3},
                                .per_token = Seconds{1e-6},
                                .own = 1e-9,
                                .inside = 2e-9,
                                .between = 3e-9,
                                .links = {BytesPerSecond{10e9}, BytesPerSecond{nic}}}}};
  for (DeviceType& type : platform.types) {
    type.fits = fits;
  }
  return platform;
}

// A million tokens of 1 kB: 1 ms, 1 s for their number, 1 s for 1 GB of their own, 6 s for 3 GB inside and 6 s for 2 GB
// between.
constexpr double kTook = 1e-3 + 1 + 1 + 3 * 2 + 2 * 3;

TEST_CASE("a lone dispatch takes the time that was measured", "[collective][dispatch]") {
  const Flows flows = flows_among(measured(1e9), 4, CollectiveKind::dispatch, traffic());
  REQUIRE(flows.size() == 2);
  CHECK(seconds_of(flows, Bytes{1e9}).value == near(kTook));
  CHECK(flows[0].sent(Bytes{1e9}).value == 2e9);
  CHECK(flows[1].sent(Bytes{1e9}).value == 3e9);
  // A combine was not measured, and takes what its bytes do.
  const Flows back = flows_among(measured(1e9), 4, CollectiveKind::combine, traffic());
  CHECK((back[0].time(Bytes{1e9}) - back[0].leg.latency).value == near(2.0));
}

TEST_CASE("NICs of another bandwidth than was measured at stretch the bytes alone", "[collective][dispatch]") {
  // Of what was measured at 2 GB/s, 1 s was that of the bytes, which now take 2 s.
  CHECK(seconds_of(flows_among(measured(2e9), 4, CollectiveKind::dispatch, traffic()), Bytes{1e9}).value ==
        near(kTook + 1));
}

TEST_CASE("a tier that did not hold the kernel up takes the whole time, or that of its bytes",
          "[collective][dispatch]") {
  const auto seconds = [](double copies_inside) {
    DispatchTraffic tokens = traffic();
    tokens.inside = copies_inside;
    Platform platform = cluster({2, 2});
    auto fits = std::make_shared<KernelFits>();
    fits->dispatches = {
        {.op = "dispatch",
         .nodes = 2,
         .processors = 20,
         .line = {.start = Seconds{1e-3}, .between = 3e-9, .links = {BytesPerSecond{100e9}, BytesPerSecond{1e9}}}}};
    for (DeviceType& type : platform.types) {
      type.fits = fits;
    }
    return seconds_of(flows_among(platform, 4, CollectiveKind::dispatch, tokens), Bytes{1e9}).value;
  };
  CHECK(seconds(3) == near(1e-3 + 6));  // 2 GB between; 3 GB inside would take 0.3 s
  CHECK(seconds(90) == near(1e-3 + 9)); // 90 GB through a port of 10 GB/s
}

TEST_CASE("groups have ways of tokens where they are told the traffic", "[collective][dispatch]") {
  const Platform platform = cluster({2, 2});
  Router router(platform);
  const DispatchTraffic tokens = traffic();
  const Group group = group_with_ways(first_devices(4), router, "auto", &tokens);
  const Flows expected = flows_among(platform, 4, CollectiveKind::dispatch, tokens);
  CHECK(seconds_of({CollectiveKind::dispatch, group, Bytes{1e9}}) == seconds_of(expected, Bytes{1e9}));
  // Groups that send tokens otherwise differ.
  DispatchTraffic more = tokens;
  more.between = 3;
  CHECK(figures_of(group) != figures_of(group_with_ways(first_devices(4), router, "auto", &more)));
  CHECK(figures_of(group) != figures_of(group_with_ways(first_devices(4), router, "auto")));
}

TEST_CASE("pairs are beside each other by tier", "[collective][dispatch]") {
  // Of four ranks on two nodes each sends a quarter of its buffer to each other one: two of them over its NIC.
  const Platform platform = cluster({2, 2});
  Router router(platform);
  const Flows flows = ways_of(CollectiveKind::all_to_all, first_devices(4), router, "auto").front().flows;
  REQUIRE(flows.size() == 2);
  CHECK(flows[1].beside);
  CHECK((flows[0].time(Bytes{1e9}) - flows[0].leg.latency).value == near(0.5));
  CHECK((flows[1].time(Bytes{1e9}) - flows[1].leg.latency).value == near(0.025));
  CHECK(seconds_of(flows, Bytes{1e9}) == flows[0].time(Bytes{1e9}));
}

} // namespace
} // namespace stagecraft
