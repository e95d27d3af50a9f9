// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/like_nodes.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace stagecraft {
namespace {

constexpr int kNetwork = -1;

// The node of each vertex; kNetwork: a switch of the network. A switch inside a node has no number of it, but a link to
// something that has.
std::vector<int> nodes_of_vertices(const Platform& platform) {
  std::vector<int> nodes;
  for (const Vertex& vertex : platform.vertices) {
    const bool is_device = vertex.kind == Vertex::Kind::device;
    const bool is_own = is_device || vertex.kind == Vertex::Kind::host || vertex.kind == Vertex::Kind::disk;
    nodes.push_back(!is_own     ? kNetwork
                    : is_device ? platform.devices[static_cast<std::size_t>(vertex.index)].node
                                : vertex.index);
  }
  const auto adopt = [&](int vertex, int neighbour) {
    int& node = nodes[static_cast<std::size_t>(vertex)];
    if (node == kNetwork && platform.vertices[static_cast<std::size_t>(vertex)].kind == Vertex::Kind::internal_switch) {
      node = nodes[static_cast<std::size_t>(neighbour)];
    }
  };
  for (const Link& link : platform.links) {
    adopt(link.from, link.to);
    adopt(link.to, link.from);
  }
  return nodes;
}

} // namespace

LikeNodes::LikeNodes(const Platform& platform) : position_(platform.links.size(), 0) {
  const std::size_t nodes = platform.nodes.size();
  const std::vector<int> of_vertex = nodes_of_vertices(platform);
  std::vector<std::vector<double>> description(nodes); // what nodes that are alike have in common
  std::vector<int> position(platform.vertices.size(), 0), count(nodes, 0);
  for (std::size_t vertex = 0; vertex < of_vertex.size(); ++vertex) {
    if (const int node = of_vertex[vertex]; node != kNetwork) {
      const Vertex& what = platform.vertices[vertex];
      position[vertex] = count[static_cast<std::size_t>(node)]++;
      const bool is_device = what.kind == Vertex::Kind::device;
      description[static_cast<std::size_t>(node)].insert(
          description[static_cast<std::size_t>(node)].end(),
          {static_cast<double>(what.kind),
           is_device ? static_cast<double>(platform.devices[static_cast<std::size_t>(what.index)].type) : 0.0,
           what.reduces ? 1.0 : 0.0, what.measured_at.value});
    }
  }
  begin_.assign(nodes + 1, 0);
  for (const Link& link : platform.links) {
    const int from = of_vertex[static_cast<std::size_t>(link.from)], to = of_vertex[static_cast<std::size_t>(link.to)];
    node_of_link_.push_back(from != kNetwork ? from : to);
    if (node_of_link_.back() != kNetwork) {
      ++begin_[static_cast<std::size_t>(node_of_link_.back()) + 1];
    }
  }
  for (std::size_t node = 0; node < nodes; ++node) {
    begin_[node + 1] += begin_[node];
  }
  links_.resize(static_cast<std::size_t>(begin_.back()));
  std::vector<std::int32_t> filled(nodes, 0);
  // A switch of the network stands by its own number, beyond those of a node's vertices.
  const auto end_of = [&](int vertex) {
    const auto at = static_cast<std::size_t>(vertex);
    return of_vertex[at] != kNetwork ? static_cast<double>(position[at])
                                     : static_cast<double>(platform.vertices.size() + at);
  };
  for (std::size_t id = 0; id < platform.links.size(); ++id) {
    if (const int own = node_of_link_[id]; own != kNetwork) {
      const auto node = static_cast<std::size_t>(own);
      const Link& link = platform.links[id];
      position_[id] = filled[node]++;
      links_[static_cast<std::size_t>(begin_[node] + position_[id])] = static_cast<LinkId>(id);
      description[node].insert(description[node].end(),
                               {end_of(link.from), end_of(link.to), link.bandwidth.value, link.latency.value,
                                static_cast<LinkId>(id) == platform.nodes[node].memory ? 1.0 : 0.0});
    }
  }
  std::map<std::vector<double>, int> kinds;
  for (std::vector<double>& one : description) {
    kind_.push_back(kinds.try_emplace(std::move(one), static_cast<int>(kinds.size())).first->second);
  }
  std::map<std::pair<int, int>, int> places; // kind of the node, place in it
  for (std::size_t device = 0; device < platform.devices.size(); ++device) {
    const std::pair<int, int> at{kind_of(platform.devices[device].node), position[device]};
    place_.push_back(places.try_emplace(at, static_cast<int>(places.size())).first->second);
  }
}

} // namespace stagecraft
