// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/rank_map.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace stagecraft {
namespace {

double bandwidth(DeviceId from, DeviceId to, Router& router) {
  double least = 0; // seconds per byte
  for (const Leg& leg : router.find(from, to)->legs) {
    least = std::max(least, 1 / leg.bandwidth.value);
  }
  return 1 / least;
}

// Looks for an order of devices, round and back to the first, in which no hop has less than a bandwidth.
class RingSearch {
public:
  RingSearch(const std::vector<DeviceId>& devices, Router& router) : devices_(devices), width_(devices.size()) {
    for (std::size_t from = 0; from < devices.size(); ++from) {
      for (std::size_t to = 0; to < devices.size(); ++to) {
        width_[from].push_back(from == to ? 0 : bandwidth(devices[from], devices[to], router));
      }
    }
  }

  /// The order whose narrowest hop is the widest; the first in the order of the devices among equals.
  std::vector<DeviceId> widest() {
    std::set<double, std::greater<>> widths;
    for (const std::vector<double>& row : width_) {
      widths.insert(row.begin(), row.end());
    }
    for (const double width : widths) {
      path_ = {0};
      steps_ = 0;
      if (width > 0 && extend(width)) {
        std::vector<DeviceId> order;
        std::transform(path_.begin(), path_.end(), std::back_inserter(order), [&](int at) { return devices_[at]; });
        return order;
      }
    }
    return devices_;
  }

private:
  bool extend(double width) {
    constexpr int kMostSteps = 100'000; // of one width; meshes of today's servers take some dozens
    if (path_.size() == devices_.size()) {
      return width_[path_.back()][0] >= width;
    }
    for (int next = 1; next < static_cast<int>(devices_.size()); ++next) {
      if (width_[path_.back()][next] >= width && std::find(path_.begin(), path_.end(), next) == path_.end()) {
        if (++steps_ > kMostSteps) {
          return false;
        }
        path_.push_back(next);
        if (extend(width)) {
          return true;
        }
        path_.pop_back();
      }
    }
    return false;
  }

  const std::vector<DeviceId>& devices_;
  std::vector<std::vector<double>> width_; // [from][to]
  std::vector<int> path_;
  int steps_ = 0;
};

// Places of ranks of a node of which each has another NIC.
std::vector<int> entries_of(const std::vector<DeviceId>& node, DeviceId elsewhere, Router& router) {
  std::set<LinkId> seen;
  std::vector<int> entries;
  for (std::size_t place = 0; place < node.size(); ++place) {
    if (seen.insert(nic_of(node[place], elsewhere, router)).second) {
      entries.push_back(static_cast<int>(place));
    }
  }
  return entries;
}

} // namespace

std::vector<int> lie_of(const std::vector<DeviceId>& devices, Router& router) {
  std::map<int, int> order; // of nodes
  for (const DeviceId device : devices) {
    order.emplace(router.platform().devices[device].node, 0);
  }
  int next = 0;
  for (auto& [node, at] : order) {
    at = next++;
  }
  std::vector<int> lie;
  for (const DeviceId device : devices) {
    lie.insert(lie.end(), {router.place_of(device), order.at(router.platform().devices[device].node)});
  }
  return lie;
}

LinkId nic_of(DeviceId from, DeviceId to, Router& router) {
  const Platform& platform = router.platform();
  for (const Leg& leg : router.find(from, to)->legs) {
    for (const LinkId link : leg.links) {
      if (platform.vertices[platform.links[link].to].kind == Vertex::Kind::fabric_switch) {
        return link;
      }
    }
  }
  return -1;
}

int common_switch(const std::vector<DeviceId>& devices, Router& router) {
  const Platform& platform = router.platform();
  int common = -1;
  for (std::size_t i = 1; i < devices.size(); ++i) {
    const Route* route = router.find(devices[i - 1], devices[i]);
    if (route->legs.size() != 1 || route->legs.front().links.size() != 2) {
      return -1;
    }
    const int vertex = platform.links[route->legs.front().links.front()].to;
    if (i > 1 && vertex != common) {
      return -1;
    }
    common = vertex;
  }
  return common;
}

int RankMap::ranks() const {
  std::size_t ranks = 0;
  for (const std::vector<DeviceId>& node : nodes) {
    ranks += node.size();
  }
  return static_cast<int>(ranks);
}

NcclGroup RankMap::lie() const { return {nodes.size(), static_cast<std::size_t>(ranks()) == nodes.size()}; }

std::vector<DeviceId> RankMap::walk(std::size_t node, int channel) const {
  std::vector<DeviceId> order = nodes[node];
  std::rotate(order.begin(), order.begin() + entries[node][channel], order.end());
  return order;
}

RankMap map_ranks(const std::vector<DeviceId>& devices, Router& router) {
  std::map<int, std::vector<DeviceId>> by_node;
  for (const DeviceId device : devices) {
    by_node[router.platform().devices[device].node].push_back(device);
  }
  constexpr std::size_t kMostSearched = 64; // ranks of a node; their pairs are looked at one by one
  const bool mesh = router.has_mesh(); // switches join all devices alike, and then their own order is as good as any
  RankMap map;
  for (auto& [number, node] : by_node) {
    std::sort(node.begin(), node.end());
    map.nodes.push_back(mesh && node.size() > 3 && node.size() <= kMostSearched ? RingSearch(node, router).widest()
                                                                                : node);
  }
  std::size_t channels = map.nodes.size() > 1 ? devices.size() : 1;
  for (std::size_t node = 0; node < map.nodes.size(); ++node) {
    const DeviceId elsewhere = map.nodes[(node + 1) % map.nodes.size()].front();
    map.entries.push_back(map.nodes.size() > 1 ? entries_of(map.nodes[node], elsewhere, router) : std::vector{0});
    channels = std::min(channels, map.entries.back().size());
  }
  for (std::vector<int>& entries : map.entries) {
    entries.resize(channels);
  }
  return map;
}

} // namespace stagecraft
