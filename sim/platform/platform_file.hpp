// A platform file as read, before it becomes vertices and links. Private to sim/platform.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/platform/known_types.hpp"

namespace stagecraft::platform_file {

/// Limits on what one file may describe, so that a typing error is reported and does not fill the memory.
inline constexpr int kMostDevices = 100'000;
inline constexpr size_t kMostLinks = 4'000'000;

/// A bandwidth per direction: up leads from a device towards the switch or host, down the other way.
struct TwoWay {
  BytesPerSecond up, down;
};

/// What a wire draws when both of its directions are idle, and when both are full.
struct LinkPower {
  Watts idle, busy;
};

/// One entry of a node's `links`.
struct NodeLink {
  enum class Kind { pcie_switch, nvlink_pair, nvswitch, host_link, torus };
  Kind kind = Kind::host_link;
  std::vector<int> devices;               ///< indices of devices in the node
  std::vector<std::pair<int, int>> pairs; ///< joined pairs; only for an nvlink_pair
  std::vector<Torus::Axis> axes;          ///< only for a torus
  TwoWay bandwidth;
  TwoWay uplink; ///< from the switch to the host; only for a pcie_switch
  Seconds latency;
  LinkPower power;
  double spread = 0;            ///< becomes Link::spread
  bool reduces = false;         ///< becomes Vertex::reduces; only for an nvswitch
  BytesPerSecond measured_at{}; ///< becomes Vertex::measured_at; only for an nvswitch
  NcclLink nccl;                ///< becomes Link::nccl
  Where where, measured_where, nccl_where;
};

/// One entry of `nodes`: `names.size()` equal nodes.
struct NodeGroup {
  std::vector<std::string> names;
  Host host;
  std::vector<int> types; ///< type of each device of a node, an index into File::types
  std::vector<NodeLink> links;
  std::optional<BytesPerSecond> nic; ///< bandwidth of each NIC; none: as the network says
  Where where;
};

enum class Topology {
  one_switch,
  leaf_spine, ///< a leaf for all NICs of some nodes
  rails       ///< a leaf for each place in a node: for the first NICs of some nodes, for their second ones, …
};

struct Network {
  Topology topology = Topology::one_switch;
  bool nic_per_device = false;
  BytesPerSecond bandwidth; ///< per NIC and direction
  Seconds latency;          ///< per link of the network
  NcclLink nccl;            ///< becomes Link::nccl
  int nodes_per_leaf = 1;   ///< unless there is one switch
  double oversubscription = 1;
  LinkPower power;   ///< per NIC
  double spread = 0; ///< becomes the Link::spread of every link
};

struct File {
  std::string name, description;
  std::vector<DeviceType> types;
  std::vector<NodeGroup> groups;
  std::optional<Network> network;
};

/// Reads the file and checks each value and each node. Throws InputError.
File read(const yaml::Node& document, const DeviceTypeSource& source, KnownTypes* known);

/// Turns nodes and devices into vertices and links. Throws InputError when there are too many.
Platform build(const File& file);

/// Two devices that cannot reach each other, if any.
std::optional<std::pair<DeviceId, DeviceId>> find_unreachable(const Platform& platform);

} // namespace stagecraft::platform_file
