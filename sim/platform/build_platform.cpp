// Turns a platform file into vertices and links. Devices come first among the vertices, then hosts, switches, fabric
// and disks. Links go both ways, except that each disk has only one, outwards, and that the memory of a host is a link
// from the host to itself.
// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/platform_file.hpp"

namespace stagecraft::platform_file {
namespace {

class Builder {
public:
  explicit Builder(const File& file) : file_(file) {}

  Platform build() {
    platform_.name = file_.name;
    platform_.description = file_.description;
    platform_.types = file_.types;
    add_nodes_and_devices();
    int node = 0;
    for (const NodeGroup& group : file_.groups) {
      where_ = group.where;
      for (size_t copy = 0; copy < group.names.size(); ++copy, ++node) {
        add_node_links(group, node);
      }
    }
    if (file_.network) {
      add_network(*file_.network);
    }
    add_disks();
    add_host_memories();
    return std::move(platform_);
  }

private:
  void add_nodes_and_devices() {
    for (const NodeGroup& group : file_.groups) {
      for (const std::string& name : group.names) {
        const int node = static_cast<int>(platform_.nodes.size());
        platform_.nodes.push_back({name, group.host});
        nic_.push_back(group.nic);
        first_device_.push_back(static_cast<int>(platform_.devices.size()));
        for (size_t index = 0; index < group.types.size(); ++index) {
          const DeviceType& type = file_.types[static_cast<size_t>(group.types[index])];
          platform_.devices.push_back({name + "/" + type.name + "-" + std::to_string(index), group.types[index], node});
          add_vertex(Vertex::Kind::device, platform_.devices.back().name,
                     static_cast<int>(platform_.devices.size()) - 1);
        }
      }
    }
    first_device_.push_back(static_cast<int>(platform_.devices.size()));
    for (size_t node = 0; node < platform_.nodes.size(); ++node) {
      add_vertex(Vertex::Kind::host, platform_.nodes[node].name + "/host", static_cast<int>(node));
    }
  }

  int add_vertex(Vertex::Kind kind, std::string name, int index = -1) {
    platform_.vertices.push_back({kind, std::move(name), index});
    return static_cast<int>(platform_.vertices.size()) - 1;
  }

  int host_vertex(int node) const { return static_cast<int>(platform_.devices.size()) + node; }

  // Adds links both ways between a lower vertex (a device, or a host below a fabric) and an upper one.
  void add_links(int lower, int upper, TwoWay bandwidth, Seconds latency, LinkPower power, double spread,
                 NcclLink nccl) {
    if (platform_.links.size() + 2 > kMostLinks) {
      throw InputError(where_, "more than " + std::to_string(kMostLinks) + " links in the platform");
    }
    const std::string& lower_name = platform_.vertices[static_cast<size_t>(lower)].name;
    const std::string& upper_name = platform_.vertices[static_cast<size_t>(upper)].name;
    const Watts idle = power.idle / 2;
    const Watts busy = power.busy / 2;
    platform_.links.push_back(
        {lower_name + ">" + upper_name, lower, upper, bandwidth.up, latency, idle, busy, spread, nccl});
    platform_.links.push_back(
        {upper_name + ">" + lower_name, upper, lower, bandwidth.down, latency, idle, busy, spread, nccl});
  }

  void add_node_links(const NodeGroup& group, int node) {
    const std::string prefix = platform_.nodes[static_cast<size_t>(node)].name + "/";
    const int first = first_device_[static_cast<size_t>(node)];
    int switches = 0;
    for (const NodeLink& link : group.links) {
      where_ = link.where;
      int upper = host_vertex(node);
      if (link.kind == NodeLink::Kind::pcie_switch) {
        upper = add_vertex(Vertex::Kind::internal_switch, prefix + "pcie-switch-" + std::to_string(switches++));
        add_links(upper, host_vertex(node), link.uplink, link.latency, link.power, link.spread, link.nccl);
      } else if (link.kind == NodeLink::Kind::nvswitch) {
        upper = add_vertex(Vertex::Kind::internal_switch, prefix + "nvswitch-" + std::to_string(switches++));
        platform_.vertices.back().reduces = link.reduces;
        platform_.vertices.back().measured_at = link.measured_at;
      }
      if (link.kind == NodeLink::Kind::torus) {
        add_torus(link, first);
        continue;
      }
      for (const int device : link.devices) {
        add_links(first + device, upper, link.bandwidth, link.latency, link.power, link.spread, link.nccl);
      }
      for (const auto& [one, other] : link.pairs) {
        add_links(first + one, first + other, link.bandwidth, link.latency, link.power, link.spread, link.nccl);
      }
    }
  }

  // Joins each device to the next one along every axis, the links of one axis after those of the one before.
  void add_torus(const NodeLink& link, int first) {
    Torus torus{link.axes, {}, std::vector<LinkId>(link.devices.size() * link.axes.size() * 2, -1)};
    for (const int device : link.devices) {
      torus.devices.push_back(first + device);
    }
    const int places = static_cast<int>(torus.devices.size());
    int stride = places;
    for (std::size_t axis = 0; axis < torus.axes.size(); ++axis) {
      const auto [size, wraps] = torus.axes[axis];
      stride /= size;
      for (int place = 0; place < places; ++place) {
        const int at = place / stride % size;
        if (at + 1 == size && !wraps) {
          continue;
        }
        const int next = place + (at + 1 < size ? stride : -at * stride);
        const auto up = static_cast<LinkId>(platform_.links.size());
        add_links(torus.devices[static_cast<size_t>(place)], torus.devices[static_cast<size_t>(next)], link.bandwidth,
                  link.latency, link.power, link.spread, link.nccl);
        torus.links[(static_cast<size_t>(place) * torus.axes.size() + axis) * 2] = up;
        torus.links[(static_cast<size_t>(next) * torus.axes.size() + axis) * 2 + 1] = up + 1;
      }
    }
    platform_.tori.push_back(std::move(torus));
  }

  // Joins NICs of one node to a switch: those of its devices first … last, or its host's. Returns their bandwidth
  // together.
  BytesPerSecond add_nics(const Network& network, int node, int first, int last, int upper) {
    const BytesPerSecond each = nic_[static_cast<size_t>(node)].value_or(network.bandwidth);
    const TwoWay bandwidth{each, each};
    if (!network.nic_per_device) {
      add_links(host_vertex(node), upper, bandwidth, network.latency, network.power, network.spread, network.nccl);
      return each;
    }
    for (int device = first; device < last; ++device) {
      add_links(device, upper, bandwidth, network.latency, network.power, network.spread, network.nccl);
    }
    return each * std::max(0, last - first);
  }

  int first_device(int node) const { return first_device_[static_cast<size_t>(node)]; }

  // A leaf for NICs of nodes begin … end: of all their devices, or of those at one place.
  void add_leaf(const Network& network, int begin, int end, std::optional<int> place, int spine) {
    const std::string group = std::to_string(begin / network.nodes_per_leaf);
    const int leaf = add_vertex(Vertex::Kind::fabric_switch,
                                place ? "rail-" + group + "-" + std::to_string(*place) : "leaf-" + group);
    BytesPerSecond nics;
    for (int node = begin; node < end; ++node) {
      const int first = first_device(node), last = first_device(node + 1);
      nics += place ? add_nics(network, node, first + *place, std::min(last, first + *place + 1), leaf)
                    : add_nics(network, node, first, last, leaf);
    }
    if (nics.value > 0) {
      const BytesPerSecond uplink = nics / network.oversubscription;
      add_links(leaf, spine, {uplink, uplink}, network.latency, {}, network.spread, network.nccl);
    }
  }

  void add_network(const Network& network) {
    const int nodes = static_cast<int>(platform_.nodes.size());
    const bool has_leaves = network.topology != Topology::one_switch;
    const int spine = add_vertex(Vertex::Kind::fabric_switch, has_leaves ? "spine" : "fabric");
    if (!has_leaves) {
      for (int node = 0; node < nodes; ++node) {
        add_nics(network, node, first_device(node), first_device(node + 1), spine);
      }
      return;
    }
    for (int begin = 0; begin < nodes; begin += network.nodes_per_leaf) {
      const int end = std::min(nodes, begin + network.nodes_per_leaf);
      if (network.topology == Topology::leaf_spine) {
        add_leaf(network, begin, end, std::nullopt, spine);
        continue;
      }
      int places = 0;
      for (int node = begin; node < end; ++node) {
        places = std::max(places, first_device(node + 1) - first_device(node));
      }
      for (int place = 0; place < places; ++place) {
        add_leaf(network, begin, end, place, spine);
      }
    }
  }

  void add_disks() {
    for (int node = 0; node < static_cast<int>(platform_.nodes.size()); ++node) {
      Node& owner = platform_.nodes[static_cast<size_t>(node)];
      const int disk = add_vertex(Vertex::Kind::disk, owner.name + "/disk", node);
      owner.disk = static_cast<LinkId>(platform_.links.size());
      platform_.links.push_back({owner.name + "/disk>" + owner.name + "/host", disk, host_vertex(node),
                                 owner.host.disk_bandwidth, Seconds{0}});
    }
  }

  // Reading and writing share a memory's bandwidth, so it is one link.
  void add_host_memories() {
    for (int node = 0; node < static_cast<int>(platform_.nodes.size()); ++node) {
      Node& owner = platform_.nodes[static_cast<size_t>(node)];
      owner.memory = static_cast<LinkId>(platform_.links.size());
      platform_.links.push_back(
          {owner.name + "/host memory", host_vertex(node), host_vertex(node), owner.host.memory_bandwidth, Seconds{0}});
    }
  }

  const File& file_;
  Platform platform_;
  std::vector<std::optional<BytesPerSecond>> nic_; // [node] where it has its own
  std::vector<int> first_device_;                  ///< per node, and one more at the end
  Where where_;                                    ///< place of what is being laid out, for errors
};

} // namespace

Platform build(const File& file) { return Builder(file).build(); }

} // namespace stagecraft::platform_file
