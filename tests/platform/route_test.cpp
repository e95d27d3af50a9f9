// Routes and their costs, against numbers worked out by hand.
// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/route.hpp"
#include "tests/catch.hpp"
#include "tests/platform/platforms.hpp"

namespace stagecraft {
namespace {

using test::near;
using test::node_text;
using test::platform_of;

constexpr double kMicro = 1e-6;

std::vector<std::string> names(const Platform& platform, const Leg& leg) {
  std::vector<std::string> text;
  for (const LinkId link : leg.links) {
    text.push_back(platform.links[static_cast<size_t>(link)].name);
  }
  return text;
}

const Leg& only_leg(Router& router, DeviceId from, DeviceId to) {
  const Route* route = router.find(from, to);
  REQUIRE(route != nullptr);
  REQUIRE(route->legs.size() == 1);
  return route->legs.front();
}

using Names = std::vector<std::string>;

TEST_CASE("below one PCIe switch a route has two links, across switches it passes the host", "[platform][route]") {
  const Platform platform = platform_of(
      node_text("n", "devices: [{type: a, count: 4}], links: ["
                     "{kind: pcie-switch, devices: [0, 1], bandwidth: 10 GB/s, latency: 2 us, uplink: 8 GB/s},"
                     "{kind: pcie-switch, devices: [2, 3], bandwidth: 10 GB/s, latency: 3 us}]"));
  Router router(platform);
  const Leg& below = only_leg(router, 0, 1);
  CHECK(names(platform, below) == Names{"n/a-0>n/pcie-switch-0", "n/pcie-switch-0>n/a-1"});
  CHECK(below.latency.value == near(4 * kMicro));
  CHECK(below.bandwidth.value == near(10e9));

  const Leg& across = only_leg(router, 1, 2);
  CHECK(names(platform, across) ==
        Names{"n/a-1>n/pcie-switch-0", "n/pcie-switch-0>n/host", "n/host>n/pcie-switch-1", "n/pcie-switch-1>n/a-2"});
  CHECK(across.latency.value == near((2 + 2 + 3 + 3) * kMicro));
  CHECK(across.bandwidth.value == near(8e9)); // the first switch's uplink
  // 8 GB at 8 GB/s: one second after the latency.
  CHECK(router.cost(1, 2).time(Bytes{8e9}).value == near(1 + 10 * kMicro));
}

TEST_CASE("an NVLink pair beats a PCIe switch by its fewer links, whatever the bandwidth", "[platform][route]") {
  const Platform platform =
      platform_of(node_text("n", "devices: [{type: a, count: 3}], links: ["
                                 "{kind: pcie-switch, bandwidth: 10 GB/s, latency: 1 us},"
                                 "{kind: nvlink-pair, pairs: [[0, 1], [1, 2]], bandwidth: 5 GB/s, latency: 8 us}]"));
  Router router(platform);
  CHECK(names(platform, only_leg(router, 0, 1)) == Names{"n/a-0>n/a-1"});
  CHECK(names(platform, only_leg(router, 1, 0)) == Names{"n/a-1>n/a-0"});
  // 0 to 2 would be two NVLinks, but nothing passes through device 1.
  CHECK(names(platform, only_leg(router, 0, 2)) == Names{"n/a-0>n/pcie-switch-0", "n/pcie-switch-0>n/a-2"});
}

TEST_CASE("among routes of as many links the widest is taken, then the lowest link numbers", "[platform][route]") {
  const Platform platform = platform_of(node_text("n", "devices: [{type: a, count: 2}], links: ["
                                                       "{kind: pcie-switch, bandwidth: 10 GB/s, latency: 0},"
                                                       "{kind: nvswitch, bandwidth: 200 GB/s, latency: 0},"
                                                       "{kind: nvswitch, bandwidth: 200 GB/s, latency: 0}]"));
  Router router(platform);
  CHECK(names(platform, only_leg(router, 0, 1)) == Names{"n/a-0>n/nvswitch-1", "n/nvswitch-1>n/a-1"});
}

TEST_CASE("a wide first link is no merit where a later link is narrow", "[platform][route]") {
  // 0 reaches 1 over host 2, through switch 3 (10 GB/s) or 4 (20 GB/s); both ways are 5 GB/s wide in all.
  Platform platform = make_star_platform({}, 2, BytesPerSecond{1}, Seconds{0});
  platform.links = {{"", 0, 3, {10e9}, {}},
                    {"", 0, 4, {20e9}, {}},
                    {"", 4, 2, {20e9}, {}},
                    {"", 3, 2, {10e9}, {}},
                    {"", 2, 1, {5e9}, {}}};
  platform.vertices.push_back({Vertex::Kind::internal_switch, "", -1});
  Router router(platform);
  CHECK(only_leg(router, 0, 1).links == std::vector<LinkId>{0, 3, 4});
  CHECK(only_leg(router, 0, 1).bandwidth.value == near(5e9));
  platform.links.back().bandwidth = {20e9};
  Router wide(platform);
  CHECK(only_leg(wide, 0, 1).links == std::vector<LinkId>{1, 2, 4});
}

TEST_CASE("up and down have bandwidths of their own", "[platform][route]") {
  const Platform platform =
      platform_of(node_text("n", "devices: [{type: a, count: 2}], links: ["
                                 "{kind: host-link, devices: [0], up: 4 GB/s, down: 6 GB/s, latency: 0},"
                                 "{kind: host-link, devices: [1], bandwidth: 10 GB/s, latency: 0},"
                                 "{kind: nvlink-pair, pairs: [], bandwidth: 1 GB/s, latency: 0}]"));
  Router router(platform);
  CHECK(only_leg(router, 0, 1).bandwidth.value == near(4e9));
  CHECK(only_leg(router, 1, 0).bandwidth.value == near(6e9));
}

TEST_CASE("a NIC per node is reached through the host, a NIC per device directly", "[platform][route]") {
  const std::string node = node_text("n", "count: 2, devices: [{type: a, count: 2}], links: ["
                                          "{kind: host-link, bandwidth: 10 GB/s, latency: 1 us}]");
  const Platform per_node = platform_of(node, "topology: switch, bandwidth: 16 Gb/s, latency: 5 us");
  Router through_host(per_node);
  const Leg& four = only_leg(through_host, 0, 2);
  CHECK(names(per_node, four) == Names{"n-0/a-0>n-0/host", "n-0/host>fabric", "fabric>n-1/host", "n-1/host>n-1/a-0"});
  CHECK(four.latency.value == near(12 * kMicro));
  CHECK(four.bandwidth.value == near(2e9));

  const Platform per_device = platform_of(node, "topology: switch, nic: device, bandwidth: 16 Gb/s, latency: 5 us");
  Router direct(per_device);
  CHECK(names(per_device, only_leg(direct, 0, 3)) == Names{"n-0/a-0>fabric", "fabric>n-1/a-1"});
  // Inside a node two links each way: the host link is wider.
  CHECK(names(per_device, only_leg(direct, 0, 1)) == Names{"n-0/a-0>n-0/host", "n-0/host>n-0/a-1"});
}

TEST_CASE("leaf-spine: an uplink carries what the leaf's NICs can send over the oversubscription",
          "[platform][route]") {
  const std::string node = node_text("n", "count: 5, devices: [{type: a, count: 2}], links: ["
                                          "{kind: nvswitch, bandwidth: 100 GB/s, latency: 1 us}]");
  const Platform platform = platform_of(node, "topology: leaf-spine, nic: device, bandwidth: 10 GB/s, latency: 5 us, "
                                              "nodes_per_leaf: 2, oversubscription: 8");
  Router router(platform);
  CHECK(names(platform, only_leg(router, 0, 2)) == Names{"n-0/a-0>leaf-0", "leaf-0>n-1/a-0"});
  const Leg& across = only_leg(router, 0, 4);
  CHECK(names(platform, across) == Names{"n-0/a-0>leaf-0", "leaf-0>spine", "spine>leaf-1", "leaf-1>n-2/a-0"});
  CHECK(across.latency.value == near(20 * kMicro));
  CHECK(across.bandwidth.value == near(4 * 10e9 / 8)); // two nodes of two NICs each
  // The last leaf has one node.
  CHECK(only_leg(router, 0, 8).bandwidth.value == near(2 * 10e9 / 8));
}

TEST_CASE("rails: devices at one place of some nodes share a leaf, others meet at the spine", "[platform][route]") {
  const std::string node = node_text("n", "count: 3, devices: [{type: a, count: 2}], links: ["
                                          "{kind: nvswitch, bandwidth: 100 GB/s, latency: 1 us}]");
  const Platform platform = platform_of(node, "topology: rails, nic: device, bandwidth: 10 GB/s, latency: 5 us, "
                                              "nodes_per_leaf: 2, oversubscription: 4");
  Router router(platform);
  CHECK(names(platform, only_leg(router, 1, 3)) == Names{"n-0/a-1>rail-0-1", "rail-0-1>n-1/a-1"});
  const Leg& across = only_leg(router, 0, 3);
  CHECK(names(platform, across) == Names{"n-0/a-0>rail-0-0", "rail-0-0>spine", "spine>rail-0-1", "rail-0-1>n-1/a-1"});
  CHECK(across.bandwidth.value == near(2 * 10e9 / 4)); // two nodes have a NIC at it
  CHECK(names(platform, only_leg(router, 1, 5)) ==
        Names{"n-0/a-1>rail-0-1", "rail-0-1>spine", "spine>rail-1-1", "rail-1-1>n-2/a-1"});
  CHECK(only_leg(router, 4, 5).links.size() == 2); // inside a node
}

TEST_CASE("data between two vendors is stored in host memory in between", "[platform][route]") {
  const Platform platform =
      platform_of(node_text("n", "count: 2, devices: [{type: a}, {type: b}], links: ["
                                 "{kind: host-link, devices: [0], bandwidth: 10 GB/s, latency: 1 us},"
                                 "{kind: host-link, devices: [1], bandwidth: 5 GB/s, latency: 2 us},"
                                 "{kind: nvlink-pair, pairs: [[0, 1]], bandwidth: 50 GB/s, latency: 0}]"),
                  "topology: switch, bandwidth: 2 GB/s, latency: 7 us");
  Router router(platform);
  const Route* near_by = router.find(0, 1);
  REQUIRE(near_by->legs.size() == 2); // never the direct link
  CHECK(names(platform, near_by->legs[0]) == Names{"n-0/a-0>n-0/host", "n-0/host memory"});
  CHECK(names(platform, near_by->legs[1]) == Names{"n-0/host memory", "n-0/host>n-0/b-1"});
  // One leg after the other: 10 GB take 1 s up and 2 s down.
  CHECK(router.cost(0, 1).time(Bytes{10e9}).value == near(1 + 2 + 3 * kMicro));

  const Route* far = router.find(0, 3);
  REQUIRE(far->legs.size() == 3);
  CHECK(names(platform, far->legs[1]) ==
        Names{"n-0/host memory", "n-0/host>fabric", "fabric>n-1/host", "n-1/host memory"});
  // 10 GB: 1 s to the host, 5 s between hosts, 2 s to the device.
  CHECK(router.cost(0, 3).time(Bytes{10e9}).value == near(1 + 5 + 2 + 17 * kMicro));
  CHECK(only_leg(router, 0, 2).bandwidth.value == near(2e9)); // one vendor: one flow through both hosts
}

TEST_CASE("what is stored in a host crosses its memory, which may be the narrowest link", "[platform][route]") {
  const auto staged = [](const std::string& memory) {
    std::string node = node_text("n", "devices: [{type: a}, {type: b}], links: ["
                                      "{kind: host-link, bandwidth: 10 GB/s, latency: 0}]");
    const std::string stated = "memory_bandwidth: 100 GB/s";
    node.replace(node.find(stated), stated.size(), "memory_bandwidth: " + memory);
    const Platform platform = platform_of(node);
    Router router(platform);
    CHECK(router.from_host(0)->bandwidth.value == near(router.find(0, 1)->legs[1].bandwidth.value));
    return router.cost(0, 1).time(Bytes{20e9}).value;
  };
  // 20 GB are written and then read: 2 s each way at the links' 10 GB/s, 20 s each way at 1 GB/s of memory.
  CHECK(staged("10 GB/s") == near(4));
  CHECK(staged("10.1 GB/s") == near(4));
  CHECK(staged("9.9 GB/s") == near(40 / 9.9));
  CHECK(staged("1 GB/s") == near(40));
}

TEST_CASE("data that only passes a host does not cross its memory", "[platform][route]") {
  std::string node = node_text("n", "devices: [{type: a, count: 2}], links: ["
                                    "{kind: host-link, bandwidth: 10 GB/s, latency: 0}]");
  node.replace(node.find("100 GB/s"), 8, "1 GB/s");
  const Platform platform = platform_of(node);
  Router router(platform);
  CHECK(names(platform, only_leg(router, 0, 1)) == Names{"n/a-0>n/host", "n/host>n/a-1"});
  CHECK(only_leg(router, 0, 1).bandwidth.value == near(10e9));
}

TEST_CASE("a device reaches itself at no cost", "[platform][route]") {
  const Platform platform = platform_of(node_text("n", "devices: [{type: a}]"));
  Router router(platform);
  CHECK(router.find(0, 0)->legs.empty());
  CHECK(router.cost(0, 0).time(Bytes{1e9}) == Seconds{0});
}

TEST_CASE("devices without a connection have no route", "[platform][route]") {
  Platform platform = make_star_platform({}, 3, BytesPerSecond{1}, Seconds{0});
  platform.links.resize(4); // device 2 loses its links
  Router router(platform);
  CHECK(router.find(0, 2) == nullptr);
  CHECK(router.find(2, 0) == nullptr);
  CHECK(router.find(0, 1) != nullptr);
  CHECK_THROWS_AS(router.cost(0, 2), std::logic_error);
}

TEST_CASE("routes stay where they are while more are found", "[platform][route]") {
  const Platform platform = make_star_platform({}, 100, BytesPerSecond{1}, Seconds{0});
  Router router(platform);
  const Route* first = router.find(0, 1);
  for (DeviceId from = 0; from < 100; ++from) {
    for (DeviceId to = 0; to < 100; ++to) {
      REQUIRE(router.find(from, to) != nullptr);
    }
  }
  CHECK(router.find(0, 1) == first);
}

// A router searches the first route between two places of like nodes and moves it to others; one that is asked for
// nothing else searches each.
TEST_CASE("a route found from one between like nodes is the one that a search finds", "[platform][route]") {
  const std::string switches = "links: [{kind: pcie-switch, devices: [0, 1], bandwidth: 10 GB/s, latency: 2 us},"
                               "{kind: pcie-switch, devices: [2, 3], bandwidth: 10 GB/s, latency: 2 us}]";
  const std::string mixed =
      node_text("n", "count: 9, devices: [{type: a, count: 4}], " + switches) +
      node_text("m", "count: 5, devices: [{type: b, count: 2}, {type: a, count: 2}], " + switches) +
      node_text("l", "count: 6, devices: [{type: a, count: 4}], " + switches);
  const std::string nic = "bandwidth: 10 GB/s, latency: 5 us, nic: " + std::string(GENERATE("device", "node"));
  const std::string topology = GENERATE("switch", "leaf-spine, nodes_per_leaf: 4, oversubscription: 2");
  const bool one_vendor = nic.ends_with("device"); // two exchange data through hosts, which then have no network
  const Platform platform =
      platform_of(one_vendor ? node_text("n", "count: 20, devices: [{type: a, count: 4}], " + switches) : mixed,
                  "topology: " + topology + ", " + nic);
  Router router(platform);
  const auto devices = static_cast<DeviceId>(platform.devices.size());
  for (DeviceId from = 0; from < devices; from += 3) {
    for (DeviceId to = 0; to < devices; to += 5) {
      Router searching(platform);
      const Route& searched = *searching.find(from, to);
      const Route& found = *router.find(from, to);
      REQUIRE(found.legs.size() == searched.legs.size());
      for (std::size_t leg = 0; leg < found.legs.size(); ++leg) {
        CHECK(found.legs[leg].links == searched.legs[leg].links);
        CHECK(found.legs[leg].latency == searched.legs[leg].latency);
        CHECK(found.legs[leg].bandwidth == searched.legs[leg].bandwidth);
      }
    }
  }
}

} // namespace
} // namespace stagecraft
