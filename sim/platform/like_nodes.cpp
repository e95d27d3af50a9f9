// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/like_nodes.hpp"

#include <initializer_list>
#include <map>
#include <numeric>
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

// What nodes that are alike have in common, as numbers: first of their vertices, then of their links.
class Descriptions {
public:
  explicit Descriptions(const Platform& platform)
      : platform_(platform), node_of_(nodes_of_vertices(platform)), of_node_(platform.nodes.size()),
        position_(platform.vertices.size(), 0) {
    std::vector<int> count(platform.nodes.size(), 0);
    for (std::size_t vertex = 0; vertex < node_of_.size(); ++vertex) {
      if (node_of_[vertex] == kNetwork) {
        continue;
      }
      const auto node = static_cast<std::size_t>(node_of_[vertex]);
      const Vertex& what = platform.vertices[vertex];
      const bool is_device = what.kind == Vertex::Kind::device;
      position_[vertex] = count[node]++;
      add(node, {static_cast<double>(what.kind),
                 is_device ? static_cast<double>(platform.devices[static_cast<std::size_t>(what.index)].type) : 0.0,
                 what.reduces ? 1.0 : 0.0, what.measured_at.value});
    }
  }

  /// The node of a link, to whose description it is added; kNetwork: it joins switches of the network.
  int add(LinkId id) {
    const Link& link = platform_.links[static_cast<std::size_t>(id)];
    const int from = node_of_[static_cast<std::size_t>(link.from)], to = node_of_[static_cast<std::size_t>(link.to)];
    const int own = from != kNetwork ? from : to;
    if (own != kNetwork) {
      const auto node = static_cast<std::size_t>(own);
      const bool is_memory = id == platform_.nodes[node].memory;
      add(node, {number_of(link.from), number_of(link.to), link.bandwidth.value, link.latency.value,
                 is_memory ? 1.0 : 0.0, static_cast<double>(link.nccl.wire), link.nccl.at.value});
    }
    return own;
  }

  /// The place of a vertex among those of its node.
  int position(std::size_t vertex) const { return position_[vertex]; }
  std::vector<std::vector<double>>& of_nodes() { return of_node_; }

private:
  void add(std::size_t node, std::initializer_list<double> numbers) {
    of_node_[node].insert(of_node_[node].end(), numbers);
  }

  // A switch of the network stands by its own number, beyond those of a node's vertices.
  double number_of(int vertex) const {
    const auto at = static_cast<std::size_t>(vertex);
    return static_cast<double>(node_of_[at] != kNetwork ? static_cast<std::size_t>(position_[at])
                                                        : platform_.vertices.size() + at);
  }

  const Platform& platform_;
  std::vector<int> node_of_;                 // [vertex]
  std::vector<std::vector<double>> of_node_; // [node]
  std::vector<int> position_;                // [vertex]
};

} // namespace

LikeNodes::LikeNodes(const Platform& platform) : position_(platform.links.size(), 0) {
  Descriptions descriptions(platform);
  begin_.assign(platform.nodes.size() + 1, 0);
  for (std::size_t id = 0; id < platform.links.size(); ++id) {
    const int node = descriptions.add(static_cast<LinkId>(id));
    node_of_link_.push_back(node);
    if (node != kNetwork) {
      position_[id] = begin_[static_cast<std::size_t>(node) + 1]++;
    }
  }
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  links_.resize(static_cast<std::size_t>(begin_.back()));
  for (std::size_t id = 0; id < platform.links.size(); ++id) {
    if (const int node = node_of_link_[id]; node != kNetwork) {
      const auto first = static_cast<std::size_t>(begin_[static_cast<std::size_t>(node)]);
      links_[first + static_cast<std::size_t>(position_[id])] = static_cast<LinkId>(id);
    }
  }
  std::map<std::vector<double>, int> kinds;
  for (std::vector<double>& one : descriptions.of_nodes()) {
    kind_.push_back(kinds.try_emplace(std::move(one), static_cast<int>(kinds.size())).first->second);
  }
  std::map<std::pair<int, int>, int> places; // kind of the node, place in it
  for (std::size_t device = 0; device < platform.devices.size(); ++device) {
    const std::pair<int, int> at{kind_of(platform.devices[device].node), descriptions.position(device)};
    place_.push_back(places.try_emplace(at, static_cast<int>(places.size())).first->second);
  }
}

} // namespace stagecraft
