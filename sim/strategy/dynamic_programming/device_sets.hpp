// The sets of devices that one stage after another may take, as DAPPLE places them on servers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/collective/collective.hpp"
#include "sim/plan/problem.hpp"

namespace stagecraft {

/// The sets of devices that stages may take. A node says how much of each server is in use. From a node, a stage takes
/// any number of units of devices by one of three policies: fresh-first (servers not in use yet), append-first (servers
/// partly in use), or scatter-first (one unit from each server in turn).
struct DeviceSets {
  struct Edge {
    int from = 0, to = 0; ///< nodes
    std::vector<DeviceId> devices;
    std::vector<double> of_type; ///< [device type]: how many
    Group group;                 ///< in which the devices reduce gradients
  };
  std::vector<std::vector<int>> leaving; ///< [node]: edges; node 0 is the empty one, and edges lead to later nodes
  std::vector<Edge> edges;
};

/// All that can be reached with sets of at most `most` devices. A unit is `grain` devices of one server, which stay
/// together. No value if there are more than `most_edges` edges.
std::optional<DeviceSets> device_sets(const Problem& problem, const std::vector<DeviceId>& devices, int most, int grain,
                                      std::size_t most_edges);

} // namespace stagecraft
