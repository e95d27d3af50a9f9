// Routes: a breadth-first search backwards from the target over hosts and switches, which stops at the source.
// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/route.hpp"

#include <algorithm>
#include <limits>

#include "sim/base/error.hpp"

namespace stagecraft {

PathCost cost_of(const Route& route) {
  PathCost cost;
  for (const Leg& leg : route.legs) {
    cost.latency += leg.latency;
    cost.seconds_per_byte += 1 / leg.bandwidth.value;
  }
  return cost;
}

Narrowest narrowest_of(const Platform& platform, std::span<const LinkId> links) {
  Narrowest narrowest{-1, BytesPerSecond{std::numeric_limits<double>::infinity()}};
  for (size_t first = 0, end = 0; first < links.size(); first = end) {
    while (end < links.size() && links[end] == links[first]) {
      ++end;
    }
    const BytesPerSecond bandwidth =
        platform.links[static_cast<size_t>(links[first])].bandwidth / static_cast<double>(end - first);
    if (narrowest.link < 0 || bandwidth < narrowest.bandwidth) {
      narrowest = {links[first], bandwidth};
    }
  }
  return narrowest;
}

Router::Router(const Platform& platform)
    : platform_(platform), outgoing_(platform.vertices.size()), incoming_(platform.vertices.size()),
      host_vertex_(platform.nodes.size(), -1), torus_places_(torus_places(platform)),
      labels_(platform.vertices.size()) {
  std::vector<char> is_of_torus(platform.links.size(), 0);
  for (const Torus& torus : platform.tori) {
    for (const LinkId link : torus.links) {
      if (link >= 0) {
        is_of_torus[static_cast<size_t>(link)] = 1;
      }
    }
  }
  for (size_t link = 0; link < platform.links.size(); ++link) {
    const auto from = static_cast<size_t>(platform.links[link].from);
    outgoing_[from].push_back(static_cast<LinkId>(link));
    const Vertex::Kind tail = platform.vertices[from].kind;
    const Vertex::Kind head = platform.vertices[static_cast<size_t>(platform.links[link].to)].kind;
    const bool joins_devices = tail == Vertex::Kind::device && head == Vertex::Kind::device;
    has_mesh_ = has_mesh_ || (joins_devices && is_of_torus[link] == 0);
    if (tail != Vertex::Kind::device && tail != Vertex::Kind::disk) { // no route passes through a device or a disk
      incoming_[static_cast<size_t>(platform.links[link].to)].push_back(static_cast<LinkId>(link));
    }
  }
  for (size_t vertex = 0; vertex < platform.vertices.size(); ++vertex) {
    if (platform.vertices[vertex].kind == Vertex::Kind::host) {
      host_vertex_[static_cast<size_t>(platform.vertices[vertex].index)] = static_cast<int>(vertex);
    }
  }
}

const Route* Router::find(DeviceId from, DeviceId to) {
  const std::optional<Route>& route = found(from, to).route;
  return route ? &*route : nullptr;
}

PathCost Router::cost(DeviceId from, DeviceId to) {
  const Found& way = found(from, to);
  check(way.route.has_value(), "two devices of a platform have no route");
  return way.cost;
}

// Planners ask millions of times for the ways between few devices, too often for a hash.
const Router::Found& Router::found(DeviceId from, DeviceId to) {
  constexpr size_t kFew = 256;
  const size_t devices = platform_.devices.size();
  const size_t key = static_cast<size_t>(from) * devices + static_cast<size_t>(to);
  if (devices <= kFew && at_once_.empty()) {
    at_once_.assign(devices * devices, nullptr);
  }
  if (!at_once_.empty() && at_once_[key] != nullptr) {
    return *at_once_[key];
  }
  auto known = routes_.find(static_cast<long>(key));
  if (known == routes_.end()) {
    std::optional<Route> route = like_nodes() != nullptr ? like_route(from, to) : make_route(from, to);
    const PathCost cost = route ? cost_of(*route) : PathCost{};
    known = routes_.emplace(static_cast<long>(key), Found{std::move(route), cost}).first;
  }
  if (!at_once_.empty()) {
    at_once_[key] = &known->second;
  }
  return known->second;
}

// Few nodes are searched sooner than compared.
const LikeNodes* Router::like_nodes() {
  constexpr size_t kFew = 16;
  if (!like_nodes_ && platform_.nodes.size() > kFew) {
    like_nodes_.emplace(platform_);
  }
  return like_nodes_ ? &*like_nodes_ : nullptr;
}

int Router::place_of(DeviceId device) { return like_nodes() != nullptr ? like_nodes_->place_of(device) : device; }

// The route between the first devices that were asked for at these places, in the nodes of these two.
std::optional<Route> Router::like_route(DeviceId from, DeviceId to) {
  const auto node_of_device = [&](DeviceId device) { return platform_.devices[static_cast<size_t>(device)].node; };
  const int from_node = node_of_device(from), to_node = node_of_device(to);
  const auto [entry, added] = searched_.try_emplace(
      {like_nodes_->place_of(from), like_nodes_->place_of(to), from_node == to_node}, std::pair{from, to});
  if (added) {
    return make_route(from, to);
  }
  const Route* known = find(entry->second.first, entry->second.second);
  if (known == nullptr) {
    return std::nullopt;
  }
  const int known_from = node_of_device(entry->second.first);
  Route route = *known;
  for (Leg& leg : route.legs) {
    for (LinkId& link : leg.links) {
      if (const int node = like_nodes_->node_of(link); node >= 0) {
        link = like_nodes_->link_at(node == known_from ? from_node : to_node, link);
      }
    }
  }
  return route;
}

std::optional<Leg> Router::from_host(DeviceId to) {
  return find_leg(host_vertex_[static_cast<size_t>(platform_.devices[static_cast<size_t>(to)].node)], to);
}

std::optional<Leg> Router::to_host(DeviceId from) {
  return find_leg(from, host_vertex_[static_cast<size_t>(platform_.devices[static_cast<size_t>(from)].node)]);
}

std::optional<Route> Router::make_route(DeviceId from, DeviceId to) {
  if (from == to) {
    return Route{};
  }
  std::vector<int> stops = {from, to};
  if (platform_.type_of(from).vendor != platform_.type_of(to).vendor) {
    const int from_host = host_vertex_[static_cast<size_t>(platform_.devices[static_cast<size_t>(from)].node)];
    const int to_host = host_vertex_[static_cast<size_t>(platform_.devices[static_cast<size_t>(to)].node)];
    stops = from_host == to_host ? std::vector{from, from_host, to} : std::vector{from, from_host, to_host, to};
  }
  Route route;
  for (size_t stop = 0; stop + 1 < stops.size(); ++stop) {
    std::optional<Leg> leg = find_leg(stops[stop], stops[stop + 1]);
    if (!leg) {
      return std::nullopt;
    }
    route.legs.push_back(std::move(*leg));
  }
  return route;
}

int Router::node_of(int vertex) const {
  const Vertex& at = platform_.vertices[static_cast<size_t>(vertex)];
  return at.kind == Vertex::Kind::device ? platform_.devices[static_cast<size_t>(at.index)].node : at.index;
}

std::optional<Leg> Router::leg_through_torus(int from_vertex, int to_vertex) const {
  if (std::max(from_vertex, to_vertex) >= static_cast<int>(platform_.devices.size())) {
    return std::nullopt;
  }
  const TorusPlace from = torus_place(from_vertex), to = torus_place(to_vertex);
  if (from.torus < 0 || from.torus != to.torus) {
    return std::nullopt;
  }
  Leg leg{way_through(platform_.tori[static_cast<size_t>(from.torus)], from.place, to.place), {}, {}};
  for (const LinkId link : leg.links) {
    leg.latency += platform_.links[static_cast<size_t>(link)].latency;
  }
  leg.bandwidth = narrowest_of(platform_, leg.links).bandwidth;
  return leg;
}

std::optional<Leg> Router::find_leg(int from_vertex, int to_vertex) {
  if (std::optional<Leg> through = leg_through_torus(from_vertex, to_vertex)) {
    return through;
  }
  const bool found = label_ways(from_vertex, to_vertex);
  std::optional<Leg> leg = found ? std::optional(lowest_way(from_vertex, to_vertex)) : std::nullopt;
  if (leg) {
    add_memory(from_vertex, true, *leg);
    add_memory(to_vertex, false, *leg);
  }
  labels_[static_cast<size_t>(to_vertex)] = {};
  for (const LinkId link : shortest_links_) {
    labels_[static_cast<size_t>(platform_.links[static_cast<size_t>(link)].from)] = {};
  }
  shortest_links_.clear();
  return leg;
}

// Whether the link starts at a host that belongs to neither end's node. Skipping those keeps a search out of a thousand
// nodes.
bool Router::leaves_third_node(LinkId link, int from_node, int to_node) const {
  const Vertex& tail = platform_.vertices[static_cast<size_t>(platform_.links[static_cast<size_t>(link)].from)];
  return tail.kind == Vertex::Kind::host && tail.index != from_node && tail.index != to_node;
}

// Labels vertices layer by layer backwards from the target until a layer holds a neighbour of the source. Returns
// whether one does.
bool Router::label_ways(int from_vertex, int to_vertex) {
  const int from_node = node_of(from_vertex);
  const int to_node = node_of(to_vertex);
  labels_[static_cast<size_t>(to_vertex)] = {0, std::numeric_limits<double>::infinity(), -1};
  std::vector<int> layer = {to_vertex};
  std::vector<int> next_layer;
  while (!layer.empty()) {
    const int distance = labels_[static_cast<size_t>(layer.front())].distance;
    for (const LinkId link : outgoing_[static_cast<size_t>(from_vertex)]) {
      const int to = platform_.links[static_cast<size_t>(link)].to;
      if (labels_[static_cast<size_t>(to)].distance == distance) {
        label(link, next_layer);
      }
    }
    if (!next_layer.empty()) {
      return true;
    }
    for (const int vertex : layer) {
      for (const LinkId link : incoming_[static_cast<size_t>(vertex)]) {
        if (!leaves_third_node(link, from_node, to_node)) {
          label(link, next_layer);
        }
      }
    }
    layer.swap(next_layer);
    next_layer.clear();
  }
  return false;
}

// Updates the label of the link's tail if the link, whose head is labelled, lies on a shortest path.
void Router::label(LinkId link, std::vector<int>& layer) {
  const Link& taken = platform_.links[static_cast<size_t>(link)];
  const Label& head = labels_[static_cast<size_t>(taken.to)];
  Label& tail = labels_[static_cast<size_t>(taken.from)];
  if (tail.distance < 0) {
    tail.distance = head.distance + 1;
    layer.push_back(taken.from);
  }
  if (tail.distance == head.distance + 1) {
    tail.width = std::max(tail.width, std::min(head.width, taken.bandwidth.value));
    shortest_links_.push_back(link);
  }
}

// Data that is stored in a host, or comes from there, crosses its memory.
void Router::add_memory(int vertex, bool first, Leg& leg) const {
  const Vertex& end = platform_.vertices[static_cast<size_t>(vertex)];
  const LinkId memory = end.kind == Vertex::Kind::host ? platform_.nodes[static_cast<size_t>(end.index)].memory : -1;
  if (memory >= 0) {
    leg.links.insert(first ? leg.links.begin() : leg.links.end(), memory);
    leg.bandwidth = std::min(leg.bandwidth, platform_.links[static_cast<size_t>(memory)].bandwidth);
  }
}

// Among the shortest paths, takes the widest; among those, the link of the lowest number at each vertex.
Leg Router::lowest_way(int from_vertex, int to_vertex) {
  const double width = labels_[static_cast<size_t>(from_vertex)].width;
  for (const LinkId link : shortest_links_) {
    const Link& taken = platform_.links[static_cast<size_t>(link)];
    LinkId& next = labels_[static_cast<size_t>(taken.from)].next;
    if (std::min(labels_[static_cast<size_t>(taken.to)].width, taken.bandwidth.value) >= width) {
      next = next < 0 ? link : std::min(next, link);
    }
  }
  Leg leg{{}, {}, BytesPerSecond{width}};
  for (int vertex = from_vertex; vertex != to_vertex;) {
    const LinkId link = labels_[static_cast<size_t>(vertex)].next;
    const Link& taken = platform_.links[static_cast<size_t>(link)];
    leg.links.push_back(link);
    leg.latency += taken.latency;
    vertex = taken.to;
  }
  return leg;
}

} // namespace stagecraft
