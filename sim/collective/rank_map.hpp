// Where the ranks of a group lie: by nodes, in the order of a ring inside each, and behind which NICs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/collective/protocol.hpp"
#include "sim/platform/route.hpp"

namespace stagecraft {

/// A channel of a collective enters each node at another rank, so that it crosses another NIC, and carries its part of
/// the bytes. There are as many as the node with the fewest NICs has for its ranks; one within a single node.
struct RankMap {
  std::vector<std::vector<DeviceId>> nodes; ///< by number; the ranks of each in the order of a ring inside it
  std::vector<std::vector<int>> entries;    ///< [node][channel]: the place in `nodes` at which the channel enters

  int ranks() const;
  NcclGroup lie() const;
  int channels() const { return entries.empty() ? 1 : static_cast<int>(entries.front().size()); }
  /// The ranks of a node from a channel's entry on, once round.
  std::vector<DeviceId> walk(std::size_t node, int channel) const;
};

/// The devices by nodes, whatever their order: nodes and devices by number, so that neighbours in the platform's file
/// are neighbours in the group. Only where devices are joined directly, as in a mesh, a ring inside a node takes the
/// order whose slowest hop is the fastest.
RankMap map_ranks(const std::vector<DeviceId>& devices, Router& router);

/// How devices lie to each other: their places, and whose nodes come first. Groups for which this is the same exchange
/// data in the same ways, over links that differ in their numbers alone.
std::vector<int> lie_of(const std::vector<DeviceId>& devices, Router& router);

/// The first link into the network between nodes on the way from one device to another; -1 where there is none.
LinkId nic_of(DeviceId from, DeviceId to, Router& router);

/// The switch that joins all of these devices, each by a link of its own; -1 where there is none, or one device only.
int common_switch(const std::vector<DeviceId>& devices, Router& router);

} // namespace stagecraft
