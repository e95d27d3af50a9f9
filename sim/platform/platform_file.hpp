// A platform file as read, before it is laid out as vertices and links. Private to sim/platform.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/platform/known_types.hpp"

namespace stagecraft::platform_file {

/// Limits on what one file may describe, so that a slip of the pen is an error and not an endless run.
inline constexpr int kMostDevices = 100'000;
inline constexpr size_t kMostLinks = 4'000'000;

/// A bandwidth per direction: up leads from a device towards the switch or host, down back.
struct TwoWay {
  BytesPerSecond up, down;
};

/// What a wire draws with both of its directions empty, or full.
struct LinkPower {
  Watts idle, busy;
};

/// One entry of a node's `links`.
struct NodeLink {
  enum class Kind { pcie_switch, nvlink_pair, nvswitch, host_link };
  Kind kind = Kind::host_link;
  std::vector<int> devices;               ///< indices in the node
  std::vector<std::pair<int, int>> pairs; ///< of an nvlink_pair
  TwoWay bandwidth;
  TwoWay uplink; ///< of a pcie_switch, to the host
  Seconds latency;
  LinkPower power;
  double spread = 0; ///< of Link
  Where where;
};

/// One entry of `nodes`: `names.size()` equal nodes.
struct NodeGroup {
  std::vector<std::string> names;
  Host host;
  std::vector<int> types; ///< per device of a node, index into File::types
  std::vector<NodeLink> links;
  Where where;
};

struct Network {
  bool leaf_spine = false;
  bool nic_per_device = false;
  BytesPerSecond bandwidth; ///< of a NIC, each way
  Seconds latency;          ///< of each link of the network
  int nodes_per_leaf = 1;
  double oversubscription = 1;
  LinkPower power;   ///< of a NIC
  double spread = 0; ///< of every link
};

struct File {
  std::string name, description;
  std::vector<DeviceType> types;
  std::vector<NodeGroup> groups;
  std::optional<Network> network;
};

/// Reads and checks everything that one value or one node can tell. Throws InputError.
File read(const yaml::Node& document, const DeviceTypeSource& source, KnownTypes* known);

/// Lays the nodes, devices, vertices and links out. Throws InputError when there are too many.
Platform build(const File& file);

/// Two devices that cannot reach each other, if any.
std::optional<std::pair<DeviceId, DeviceId>> find_unreachable(const Platform& platform);

} // namespace stagecraft::platform_file
