// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/collective.hpp"

#include <algorithm>

namespace stagecraft {

PathCost slowest_of(const PathCost& a, const PathCost& b) {
  return {std::max(a.latency, b.latency), std::max(a.seconds_per_byte, b.seconds_per_byte)};
}

Group ring_of(const std::vector<DeviceId>& devices, Router& router) {
  Group group{static_cast<int>(devices.size()), {}};
  for (std::size_t i = 0; i < devices.size() && devices.size() > 1; ++i) {
    group.slowest = slowest_of(group.slowest, router.cost(devices[i], devices[(i + 1) % devices.size()]));
  }
  return group;
}

Traffic traffic_of(const Collective& collective) {
  const int ranks = collective.group.ranks;
  if (ranks <= 1) {
    return {};
  }
  switch (collective.kind) {
  case CollectiveKind::all_reduce:
    return {collective.bytes * (2.0 * (ranks - 1) / ranks), 2 * (ranks - 1)};
  case CollectiveKind::reduce_scatter:
  case CollectiveKind::all_gather:
  case CollectiveKind::all_to_all:
    return {collective.bytes * (static_cast<double>(ranks - 1) / ranks), ranks - 1};
  }
  return {};
}

Seconds seconds_of(const Collective& collective) {
  const Traffic traffic = traffic_of(collective);
  const PathCost& path = collective.group.slowest;
  return path.latency * traffic.steps + Seconds{traffic.bytes.value * path.seconds_per_byte};
}

} // namespace stagecraft
