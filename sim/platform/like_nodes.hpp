// Nodes that are built alike: what is known of a route in some of them holds for all others.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/platform/platform.hpp"

namespace stagecraft {

/// Numbers the nodes by how they are built. Two nodes are alike where their devices, switches and links correspond in
/// the order of their numbers, with the same types, bandwidths and latencies, and where they are joined to the same
/// switches of the network. To exchange two such nodes, each with all that belongs to it, changes no route but the
/// numbers of its links.
class LikeNodes {
public:
  explicit LikeNodes(const Platform& platform);

  /// The same for all nodes that are alike.
  int kind_of(int node) const { return kind_[static_cast<std::size_t>(node)]; }
  /// The same for devices at the same place of nodes that are alike; smaller than the number of devices.
  int place_of(DeviceId device) const { return place_[static_cast<std::size_t>(device)]; }
  /// The node that a link belongs to; -1: it joins switches of the network.
  int node_of(LinkId link) const { return node_of_link_[static_cast<std::size_t>(link)]; }
  /// The link of `node` that corresponds to a link of a node like it.
  LinkId link_at(int node, LinkId link) const {
    const std::int32_t first = begin_[static_cast<std::size_t>(node)];
    const std::int32_t position = position_[static_cast<std::size_t>(link)];
    return links_[static_cast<std::size_t>(first) + static_cast<std::size_t>(position)];
  }

private:
  std::vector<int> kind_;              // [node]
  std::vector<int> place_;             // [device]
  std::vector<int> node_of_link_;      // [link]
  std::vector<std::int32_t> position_; // [link]: among those of its node
  std::vector<std::int32_t> begin_;    // [node], and the end
  std::vector<LinkId> links_;          // of each node, ascending
};

} // namespace stagecraft
