// Ways through a torus, against a search over its links, and how a platform's file lays one out.
// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <queue>

#include "sim/platform/route.hpp"
#include "tests/catch.hpp"
#include "tests/collective/clusters.hpp"

namespace stagecraft {
namespace {

using test::near;
using test::tori;

// The fewest links of the torus from one device to all others, by a breadth-first search.
std::vector<int> distances(const Platform& platform, DeviceId from) {
  std::vector<int> distance(platform.devices.size(), -1);
  distance[from] = 0;
  std::queue<int> next;
  for (next.push(from); !next.empty(); next.pop()) {
    for (const LinkId id : platform.tori.front().links) {
      if (id >= 0 && platform.links[id].from == next.front() && distance[platform.links[id].to] < 0) {
        distance[platform.links[id].to] = distance[next.front()] + 1;
        next.push(platform.links[id].to);
      }
    }
  }
  return distance;
}

TEST_CASE("a way through a torus has as few links as a search finds, one after another", "[platform][torus]") {
  for (const auto& [devices, shape, wraparound] : {std::tuple{8, "[8]", "true"},
                                                   {7, "[7]", "true"},
                                                   {5, "[5]", "false"},
                                                   {16, "[4, 4]", "true"},
                                                   {24, "[2, 3, 4]", "true"},
                                                   {18, "[3, 6]", "[false, true]"},
                                                   {4, "[1, 2, 2]", "true"}}) {
    CAPTURE(shape, wraparound);
    const Platform platform = tori(1, devices, shape, wraparound);
    Router router(platform);
    for (DeviceId from = 0; from < devices; ++from) {
      const std::vector<int> fewest = distances(platform, from);
      for (DeviceId to = 0; to < devices; ++to) {
        const Route* route = router.find(from, to);
        REQUIRE(route != nullptr);
        if (from == to) {
          continue;
        }
        const Leg& leg = route->legs.front();
        CHECK(static_cast<int>(leg.links.size()) == fewest[to]); // and not the two links by the host
        CHECK(leg.latency.value == near(fewest[to] * 1e-6));
        int at = from;
        for (const LinkId link : leg.links) {
          CHECK(platform.links[link].from == at);
          at = platform.links[link].to;
        }
        CHECK(at == to);
      }
    }
  }
}

// On an even ring half of the ranks are as far one way as the other, and take either by turns.
TEST_CASE("ways among all devices of a torus cross its links equally often", "[platform][torus]") {
  for (const auto& [devices, shape] : {std::pair{8, "[8]"}, {16, "[4, 4]"}, {9, "[3, 3]"}}) {
    CAPTURE(shape);
    const Platform platform = tori(1, devices, shape, "true");
    Router router(platform);
    std::map<LinkId, int> crossed;
    for (DeviceId from = 0; from < devices; ++from) {
      for (DeviceId to = 0; to < devices; ++to) {
        for (const Leg& leg : router.find(from, to)->legs) {
          for (const LinkId link : leg.links) {
            ++crossed[link];
          }
        }
      }
    }
    for (const auto& [link, times] : crossed) {
      CHECK(times == crossed.begin()->second);
    }
  }
}

TEST_CASE("a torus joins each device to the next along every axis", "[platform][torus]") {
  const auto links = [](const std::string& shape, const std::string& wraparound, int devices) {
    const Platform platform = tori(1, devices, shape, wraparound);
    return std::count_if(platform.tori.front().links.begin(), platform.tori.front().links.end(),
                         [](LinkId link) { return link >= 0; });
  };
  CHECK(links("[4, 4]", "true", 16) == 2 * 2 * 16);             // two axes, two directions
  CHECK(links("[4, 4]", "false", 16) == 2 * 2 * 12);            // three joints in each of four lines
  CHECK(links("[4, 4]", "[true, false]", 16) == 2 * (16 + 12)); // axis by axis
  CHECK(links("[2, 2]", "true", 4) == 2 * 4);                   // two devices have one joint, whichever way
  CHECK(links("[1, 3]", "true", 3) == 2 * 3);
}

TEST_CASE("what only a torus joins is reached", "[platform][torus]") {
  const Platform platform = test::platform_of(
      test::node_text("n", "devices: [{type: a, count: 9}], links: [{kind: torus, shape: [3, 3], wraparound: true, "
                           "bandwidth: 1 GB/s, latency: 0}]"));
  Router router(platform);
  CHECK(router.find(0, 8)->legs.front().links.size() == 2);
}

TEST_CASE("devices of two tori meet on the network", "[platform][torus]") {
  const Platform platform = tori(2, 4, "[4]", "true");
  Router router(platform);
  const Leg& leg = router.find(0, 6)->legs.front();
  CHECK(leg.links.size() == 2); // its NIC and the other's
  CHECK(leg.bandwidth.value == near(1e9));
}

} // namespace
} // namespace stagecraft
