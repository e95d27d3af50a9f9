// Whether every device reaches every other, in time linear in the links: devices with the same neighbours form one
// group.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "sim/platform/platform_file.hpp"

namespace stagecraft::platform_file {
namespace {

// Hosts and switches joined by links are one component; links go both ways, and nothing passes through a device.
class Components {
public:
  explicit Components(const Platform& platform) : parent_(platform.vertices.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (const Link& link : platform.links) {
      if (std::max(link.from, link.to) >= static_cast<int>(platform.devices.size()) &&
          std::min(link.from, link.to) >= static_cast<int>(platform.devices.size())) {
        parent_[static_cast<size_t>(find(link.from))] = find(link.to);
      }
    }
  }

  int find(int vertex) {
    while (parent_[static_cast<size_t>(vertex)] != vertex) {
      int& parent = parent_[static_cast<size_t>(vertex)];
      parent = parent_[static_cast<size_t>(parent)];
      vertex = parent;
    }
    return vertex;
  }

private:
  std::vector<int> parent_;
};

// Devices that reach the same others, direct links aside.
struct Group {
  std::set<int> components; ///< and, beyond the vertices, tori
  std::string vendor;
  int host = 0; ///< component of the node's host

  auto operator<=>(const Group&) const = default;
};

using DirectLinks = std::set<std::pair<DeviceId, DeviceId>>; // between devices of one vendor
using Groups = std::map<Group, std::vector<DeviceId>>;

// The usual case, checked first: all devices join one component; where there are several vendors, it is that of their
// hosts.
bool all_on_one(const Groups& groups) {
  const Group& first = groups.begin()->first;
  const auto joins = [&](int component, bool must_be_host) {
    return std::all_of(groups.begin(), groups.end(), [&](const auto& entry) {
      return entry.first.components.count(component) > 0 && (!must_be_host || entry.first.host == component);
    });
  };
  const bool one_vendor =
      std::all_of(groups.begin(), groups.end(), [&](const auto& entry) { return entry.first.vendor == first.vendor; });
  return std::any_of(first.components.begin(), first.components.end(),
                     [&](int component) { return joins(component, !one_vendor); });
}

bool reaches(const Group& from, const Group& to) {
  if (from.vendor != to.vendor) {
    return from.host == to.host && from.components.count(from.host) > 0 && to.components.count(to.host) > 0;
  }
  return std::any_of(from.components.begin(), from.components.end(),
                     [&](int component) { return to.components.count(component) > 0; });
}

// Two devices without a direct link, one from each group; nothing when there are none.
std::optional<std::pair<DeviceId, DeviceId>> find_apart(const std::vector<DeviceId>& group,
                                                        const std::vector<DeviceId>& other, const DirectLinks& direct) {
  for (const DeviceId from : group) {
    for (const DeviceId to : other) {
      if (from != to && direct.count({from, to}) == 0) {
        return std::minmax(from, to);
      }
    }
  }
  return std::nullopt;
}

} // namespace

std::optional<std::pair<DeviceId, DeviceId>> find_unreachable(const Platform& platform) {
  const int devices = static_cast<int>(platform.devices.size());
  Components components(platform);
  std::vector<Group> group_of(platform.devices.size());
  DirectLinks direct;
  for (DeviceId device = 0; device < devices; ++device) {
    Group& group = group_of[static_cast<size_t>(device)];
    group.vendor = platform.type_of(device).vendor;
    group.host = components.find(devices + platform.devices[static_cast<size_t>(device)].node);
  }
  for (const Link& link : platform.links) {
    if (link.from < devices && link.to < devices) {
      if (platform.type_of(link.from).vendor == platform.type_of(link.to).vendor) {
        direct.emplace(link.from, link.to);
      }
    } else if (link.from < devices) {
      group_of[static_cast<size_t>(link.from)].components.insert(components.find(link.to));
    }
  }
  for (size_t torus = 0; torus < platform.tori.size(); ++torus) {
    for (const DeviceId device : platform.tori[torus].devices) {
      group_of[static_cast<size_t>(device)].components.insert(static_cast<int>(platform.vertices.size() + torus));
    }
  }
  Groups groups;
  for (DeviceId device = 0; device < devices; ++device) {
    groups[group_of[static_cast<size_t>(device)]].push_back(device);
  }
  if (all_on_one(groups)) {
    return std::nullopt;
  }
  for (const auto& [group, members] : groups) {
    for (const auto& [other, other_members] : groups) {
      if (!reaches(group, other)) {
        if (const auto apart = find_apart(members, other_members, direct)) {
          return apart;
        }
      }
    }
  }
  return std::nullopt;
}

} // namespace stagecraft::platform_file
