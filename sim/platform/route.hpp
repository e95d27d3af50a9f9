// Routes through the network, and how long a transfer takes on one that it has for itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/platform/like_nodes.hpp"
#include "sim/platform/platform.hpp"
#include "sim/platform/torus.hpp"

namespace stagecraft {

/// Links that data crosses as one flow: its latency is their sum, its bandwidth the least of them. A leg that begins or
/// ends in a host crosses that host's memory too.
struct Leg {
  std::vector<LinkId> links;
  Seconds latency;
  BytesPerSecond bandwidth;
};

/// The path from one device to another. One leg where they reach each other directly; several, one after the other,
/// between devices of two vendors, whose data is stored in host memory on its path. No leg from a device to itself.
struct Route {
  std::vector<Leg> legs;
};

/// A route in two numbers: a lone transfer of n bytes takes latency + n * seconds_per_byte.
struct PathCost {
  Seconds latency;
  double seconds_per_byte = 0;

  Seconds time(Bytes bytes) const { return latency + Seconds{bytes.value * seconds_per_byte}; }
};

PathCost cost_of(const Route& route);

/// The link that bounds one flow over all these links, and what the flow has where nobody else uses them. A link that
/// stands in the list several times, one after the other, carries every byte as many times. Without links: -1,
/// infinite.
struct Narrowest {
  LinkId link = -1;
  BytesPerSecond bandwidth;
};
Narrowest narrowest_of(const Platform& platform, std::span<const LinkId> links);

/// Finds routes and remembers them. A route has the fewest links; among such routes, the largest bandwidth; then the
/// lowest link numbers. Between two devices of a torus it is the way through that (way_through()).
class Router {
public:
  explicit Router(const Platform& platform);

  const Platform& platform() const { return platform_; }

  /// The route between two devices, valid while the router lives; nothing where there is none.
  const Route* find(DeviceId from, DeviceId to);
  /// The path from the host of a device's node to the device, for data that the host has made; nothing where there is
  /// none.
  std::optional<Leg> from_host(DeviceId to);
  /// The same from a device to the host of its node, for data that it leaves there.
  std::optional<Leg> to_host(DeviceId from);
  /// cost_of(find(from, to)); std::logic_error where there is no route, which loaders rule out.
  PathCost cost(DeviceId from, DeviceId to);
  /// Routes between devices at the same places, in one node or in two, differ in the numbers of links alone. Where
  /// nodes are few each device is a place of its own.
  int place_of(DeviceId device);
  /// Whether any link joins two devices directly, but for those of a torus.
  bool has_mesh() const { return has_mesh_; }

  /// Where a device stands in a torus, if it is in one.
  TorusPlace torus_place(DeviceId device) const { return torus_places_[static_cast<std::size_t>(device)]; }

  /// Which nodes are alike; null where they are few.
  const LikeNodes* like_nodes();

private:
  /// What was found between two devices: perhaps no route; and its cost, if there is one.
  struct Found {
    std::optional<Route> route;
    PathCost cost;
  };

  const Found& found(DeviceId from, DeviceId to);
  std::optional<Route> like_route(DeviceId from, DeviceId to);
  std::optional<Leg> find_leg(int from_vertex, int to_vertex);
  std::optional<Leg> leg_through_torus(int from_vertex, int to_vertex) const;
  std::optional<Route> make_route(DeviceId from, DeviceId to);
  int node_of(int vertex) const;
  bool leaves_third_node(LinkId link, int from_node, int to_node) const;
  bool label_ways(int from_vertex, int to_vertex);
  Leg lowest_way(int from_vertex, int to_vertex);
  void add_memory(int vertex, bool first, Leg& leg) const;
  void label(LinkId link, std::vector<int>& layer);

  /// What a search knows of a vertex: the fewest links to the target, and the widest path among those.
  struct Label {
    int distance = -1;
    double width = 0;
    LinkId next = -1;
  };

  const Platform& platform_;
  bool has_mesh_ = false;
  std::vector<std::vector<LinkId>> outgoing_; ///< per vertex
  std::vector<std::vector<LinkId>> incoming_; ///< per vertex, from hosts and switches: nothing passes through a device
  std::vector<int> host_vertex_;              ///< per node
  std::vector<TorusPlace> torus_places_;      ///< per device
  std::unordered_map<long, Found> routes_;    ///< [from * devices + to]
  std::vector<const Found*> at_once_;         ///< the same as an array, where devices are few; null: not asked for yet
  std::optional<LikeNodes> like_nodes_;       ///< once asked for, where nodes are many
  /// Places, and whether in one node -> the ends of the route that was searched.
  std::map<std::tuple<int, int, bool>, std::pair<DeviceId, DeviceId>> searched_;
  std::vector<Label> labels_;          ///< per vertex, for the current search
  std::vector<LinkId> shortest_links_; ///< links on shortest paths to the target, for the current search
};

} // namespace stagecraft
