// Clusters for tests of collectives: equal nodes with a switch inside and NICs to one switch between them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "sim/collective/collective.hpp"
#include "tests/platform/platforms.hpp"

namespace stagecraft::test {

inline constexpr std::array kKinds = {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                      CollectiveKind::all_gather, CollectiveKind::all_to_all};

struct Cluster {
  int nodes = 1, devices = 1; ///< devices of each node
  std::string nic = "device";
  std::string latency = "1 us"; ///< of each link
  bool reduces = false;         ///< the switch inside
  std::string measured_at = ""; ///< of the switch inside, whose devices then have measured collectives (kMeasured)
};

/// 10 GB/s to the switch inside a node, 1 GB/s through each NIC.
inline Platform cluster(const Cluster& how) {
  const std::string inside = "{kind: nvswitch, bandwidth: 10 GB/s, latency: " + how.latency +
                             ", reduces: " + (how.reduces ? "true" : "false") +
                             (how.measured_at.empty() ? "" : ", measured_at: " + how.measured_at) + "}";
  const std::string type = how.measured_at.empty() ? "a" : "m";
  const std::string to_host = "{kind: host-link, bandwidth: 10 GB/s, latency: " + how.latency + "}";
  return platform_of(node_text("n", "count: " + std::to_string(how.nodes) + ", devices: [{type: " + type + ", count: " +
                                        std::to_string(how.devices) + "}], links: [" + inside + ", " + to_host + "]"),
                     "topology: switch, nic: " + how.nic + ", bandwidth: 1 GB/s, latency: " + how.latency);
}

/// Nodes whose devices have a link of 10 GB/s and 2 us to each other one, and a NIC of 1 GB/s each.
inline Platform meshes(int nodes, int devices) {
  std::string pairs;
  for (int a = 0; a < devices; ++a) {
    for (int b = a + 1; b < devices; ++b) {
      pairs += (pairs.empty() ? "[" : ", [") + std::to_string(a) + ", " + std::to_string(b) + "]";
    }
  }
  return platform_of(node_text("n", "count: " + std::to_string(nodes) + ", devices: [{type: a, count: " +
                                        std::to_string(devices) + "}], links: [{kind: nvlink-pair, pairs: [" + pairs +
                                        "], bandwidth: 10 GB/s, latency: 2 us}, {kind: host-link, bandwidth: 10 GB/s, "
                                        "latency: 1 us}]"),
                     "topology: switch, nic: device, bandwidth: 1 GB/s, latency: 1 us");
}

/// Nodes of a torus of 10 GB/s and 1 us a link each, with a NIC of 1 GB/s for each device. `shape` and `wraparound` as
/// in a platform's file.
inline Platform tori(int nodes, int devices, const std::string& shape, const std::string& wraparound) {
  return platform_of(node_text("n", "count: " + std::to_string(nodes) +
                                        ", devices: [{type: a, count: " + std::to_string(devices) +
                                        "}], links: [{kind: torus, shape: " + shape + ", wraparound: " + wraparound +
                                        ", bandwidth: 10 GB/s, latency: 1 us}, {kind: host-link, bandwidth: 20 GB/s, "
                                        "latency: 1 us}]"),
                     "topology: switch, nic: device, bandwidth: 1 GB/s, latency: 1 us");
}

inline std::vector<DeviceId> first_devices(int count) {
  std::vector<DeviceId> devices(count);
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

} // namespace stagecraft::test
