// Whether every device reaches every other, in time linear in the links: devices are grouped by what they hang on.
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

// Devices that reach the same others, but for direct links.
struct Group {
  std::set<int> components;
  std::string vendor;
  int host = 0; ///< component of the node's host

  auto operator<=>(const Group&) const = default;
};

bool reaches(const Group& from, const Group& to) {
  if (from.vendor != to.vendor) {
    return from.host == to.host && from.components.count(from.host) > 0 && to.components.count(to.host) > 0;
  }
  return std::any_of(from.components.begin(), from.components.end(),
                     [&](int component) { return to.components.count(component) > 0; });
}

} // namespace

std::optional<std::pair<DeviceId, DeviceId>> find_unreachable(const Platform& platform) {
  const int devices = static_cast<int>(platform.devices.size());
  Components components(platform);
  std::vector<Group> group_of(platform.devices.size());
  std::set<std::pair<int, int>> direct;
  for (int device = 0; device < devices; ++device) {
    Group& group = group_of[static_cast<size_t>(device)];
    group.vendor = platform.type_of(device).vendor;
    group.host = components.find(devices + platform.devices[static_cast<size_t>(device)].node);
  }
  for (const Link& link : platform.links) {
    if (link.from < devices && link.to < devices) {
      direct.emplace(link.from, link.to);
    } else if (link.from < devices) {
      group_of[static_cast<size_t>(link.from)].components.insert(components.find(link.to));
    }
  }
  std::map<Group, std::vector<DeviceId>> groups;
  for (int device = 0; device < devices; ++device) {
    groups[group_of[static_cast<size_t>(device)]].push_back(device);
  }
  for (const auto& [group, members] : groups) {
    for (const auto& [other, other_members] : groups) {
      if (reaches(group, other)) {
        continue;
      }
      for (const DeviceId from : members) {
        for (const DeviceId to : other_members) {
          const bool linked = group.vendor == other.vendor && direct.count({from, to}) > 0;
          if (from != to && !linked) {
            return std::minmax(from, to);
          }
        }
      }
    }
  }
  return std::nullopt;
}

} // namespace stagecraft::platform_file
