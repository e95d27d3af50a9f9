// SPDX-License-Identifier: Apache-2.0
#include "sim/app/run/platform_summary.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/platform/like_nodes.hpp"
#include "sim/platform/route.hpp"
#include "sim/platform/vertex_name.hpp"
#include "sim/report/table.hpp"

namespace stagecraft {
namespace {

/// Wires, each both ways, between vertices of the same kinds, with the same bandwidth and latency.
struct WireKind {
  std::string ends;
  BytesPerSecond bandwidth;
  Seconds latency;

  bool operator<(const WireKind& other) const {
    return std::tuple(ends, bandwidth.value, latency.value) <
           std::tuple(other.ends, other.bandwidth.value, other.latency.value);
  }
  bool operator==(const WireKind& other) const { return !(*this < other) && !(other < *this); }
};
using WireCounts = std::map<WireKind, int>;

/// What a node is made of; nodes for which these are equal share a row.
struct NodeParts {
  std::map<std::string, int> devices; // of each type
  std::vector<std::string> tori;      // in words
  WireCounts inside, outside;

  bool operator==(const NodeParts&) const = default;
};

// "torus of 8 x 16, the ends of axis 2 joined".
std::string torus_text(const Torus& torus) {
  std::string sizes, joined;
  for (std::size_t axis = 0; axis < torus.axes.size(); ++axis) {
    sizes += (axis > 0 ? " x " : "") + std::to_string(torus.axes[axis].size);
    if (torus.axes[axis].wraps) {
      joined += (joined.empty() ? "" : " and ") + std::to_string(axis + 1);
    }
  }
  const bool all =
      std::all_of(torus.axes.begin(), torus.axes.end(), [](const Torus::Axis& axis) { return axis.wraps; });
  return "torus of " + sizes + ", " +
         (all              ? "the ends of all axes joined"
          : joined.empty() ? "no ends joined"
                           : "the ends of axis " + joined + " joined");
}

// Nodes, and the wires between switches of the network, in `between`.
std::vector<NodeParts> parts_of_nodes(const Platform& platform, WireCounts& between) {
  std::vector<NodeParts> nodes(platform.nodes.size());
  for (const Device& device : platform.devices) {
    ++nodes[static_cast<std::size_t>(device.node)].devices[platform.types[static_cast<std::size_t>(device.type)].name];
  }
  for (const Torus& torus : platform.tori) {
    const DeviceId first = torus.devices.front();
    const int node = platform.devices[static_cast<std::size_t>(first)].node;
    nodes[static_cast<std::size_t>(node)].tori.push_back(torus_text(torus));
  }
  const LikeNodes owners(platform);
  for (std::size_t id = 0; id < platform.links.size(); ++id) {
    const Link& link = platform.links[id];
    const Vertex &from = platform.vertices[static_cast<std::size_t>(link.from)],
                 &to = platform.vertices[static_cast<std::size_t>(link.to)];
    if (link.from >= link.to || from.kind == Vertex::Kind::disk || to.kind == Vertex::Kind::disk) {
      continue; // the other direction of a wire, and what no data between devices crosses
    }
    const int node = owners.node_of(static_cast<LinkId>(id));
    const bool leaves = from.kind == Vertex::Kind::fabric_switch || to.kind == Vertex::Kind::fabric_switch;
    WireCounts& counts = node < 0 ? between
                         : leaves ? nodes[static_cast<std::size_t>(node)].outside
                                  : nodes[static_cast<std::size_t>(node)].inside;
    ++counts[{name_of_kind(from) + "–" + name_of_kind(to), link.bandwidth, link.latency}];
  }
  return nodes;
}

// A row for each kind of wires, with what they carry together.
void add_wires(const WireCounts& wires, Table& table) {
  for (const auto& [kind, count] : wires) {
    table.rows.push_back({{},
                          {},
                          {std::to_string(count) + " x " + kind.ends},
                          {to_text(kind.bandwidth)},
                          {to_text(kind.latency)},
                          {to_text(kind.bandwidth * count)}});
  }
}

// Nodes that are made of the same parts, with their devices, their wires inside and into the network, in rows.
std::string nodes_text(const Platform& platform, bool color) {
  WireCounts between;
  const std::vector<NodeParts> nodes = parts_of_nodes(platform, between);
  std::vector<std::vector<std::size_t>> kinds;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const std::vector<std::size_t>& kind) {
      return nodes[kind.front()] == nodes[node];
    });
    if (same == kinds.end()) {
      kinds.push_back({node});
    } else {
      same->push_back(node);
    }
  }
  Table table{{{"nodes"},
               {"", Align::right},
               {"each has"},
               {"bandwidth", Align::right},
               {"latency", Align::right},
               {"together", Align::right}},
              {}};
  for (const std::vector<std::size_t>& kind : kinds) {
    const NodeParts& parts = nodes[kind.front()];
    std::string name = platform.nodes[kind.front()].name +
                       (kind.size() > 1 ? " … " + platform.nodes[kind.back()].name : std::string()),
                count = std::to_string(kind.size());
    for (const auto& [type, number] : parts.devices) {
      table.rows.push_back(
          {{std::exchange(name, "")}, {std::exchange(count, "")}, {std::to_string(number) + " " + type}});
    }
    for (const std::string& torus : parts.tori) {
      table.rows.push_back({{}, {}, {torus}});
    }
    add_wires(parts.inside, table);
    add_wires(parts.outside, table);
  }
  if (!between.empty()) {
    table.rows.push_back({{"between nodes"}});
    add_wires(between, table);
  }
  return to_text(table, color);
}

std::string devices_text(const Platform& platform, bool color) {
  Table devices{{{"device"}, {"memory", Align::right}, {"node"}}, {}};
  constexpr std::size_t kMostShown = 64;
  for (std::size_t d = 0; d < std::min(platform.devices.size(), kMostShown); ++d) {
    devices.rows.push_back({{platform.devices[d].name},
                            {to_text(platform.type_of(static_cast<int>(d)).memory)},
                            {platform.nodes[static_cast<std::size_t>(platform.devices[d].node)].name}});
  }
  return to_text(devices, color) + (platform.devices.size() > kMostShown
                                        ? "… " + std::to_string(platform.devices.size()) + " devices in all\n"
                                        : "");
}

std::string paths_text(const Platform& platform, bool color) {
  Table paths{{{"from \\ to"}}, {}};
  constexpr std::size_t kMostPaths = 8;
  Router router(platform);
  const auto shown = static_cast<DeviceId>(std::min(platform.devices.size(), kMostPaths));
  for (DeviceId to = 0; to < shown; ++to) {
    paths.columns.push_back({platform.devices[static_cast<std::size_t>(to)].name, Align::right});
  }
  for (DeviceId from = 0; from < shown; ++from) {
    std::vector<Cell> row = {{platform.devices[static_cast<std::size_t>(from)].name}};
    for (DeviceId to = 0; to < shown; ++to) {
      const PathCost path = router.cost(from, to);
      row.push_back(
          {from == to ? "-" : to_text(BytesPerSecond{1 / path.seconds_per_byte}) + ", " + to_text(path.latency)});
    }
    paths.rows.push_back(std::move(row));
  }
  const std::size_t all = platform.devices.size();
  return "Bandwidth and latency of a lone transfer" +
         (all > kMostPaths ? ", between the first " + std::to_string(shown) + " of " + std::to_string(all) + " devices"
                           : std::string()) +
         ":\n" + to_text(paths, color);
}

} // namespace

std::string platform_summary(const Platform& platform, bool color) {
  return platform.name + (platform.description.empty() ? "" : ": " + platform.description) + "\n\n" +
         nodes_text(platform, color) + "\n" + devices_text(platform, color) + "\n" + paths_text(platform, color);
}

} // namespace stagecraft
