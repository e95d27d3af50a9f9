// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/collective.hpp"

#include <algorithm>

#include "sim/collective/group_ways.hpp"

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

Group group_with_ways(const std::vector<DeviceId>& devices, Router& router, std::string_view wanted,
                      const DispatchTraffic* tokens) {
  Group group = ring_of(devices, router);
  if (group.ranks > 1) {
    group.ways = std::make_shared<const GroupWays>(devices, router, wanted, tokens);
  }
  return group;
}

std::vector<double> figures_of(const Group& group) {
  std::vector<double> figures = {static_cast<double>(group.ranks), group.slowest.latency.value,
                                 group.slowest.seconds_per_byte};
  if (group.ways != nullptr) {
    figures.insert(figures.end(), group.ways->figures().begin(), group.ways->figures().end());
  }
  return figures;
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
  case CollectiveKind::shift:
  case CollectiveKind::dispatch: // what goes how often where follows from the devices: at least once
  case CollectiveKind::combine:
    return {collective.bytes, 1};
  }
  return {};
}

Seconds seconds_of(const Collective& collective) {
  const Group& group = collective.group;
  if (group.ways != nullptr) {
    return seconds_of(group.ways->flows(collective.kind, collective.bytes), collective.bytes);
  }
  return latency_of(collective) + Seconds{traffic_of(collective).bytes.value * group.slowest.seconds_per_byte};
}

Seconds latency_of(const Collective& collective) {
  const Group& group = collective.group;
  if (group.ways == nullptr) {
    return group.slowest.latency * traffic_of(collective).steps;
  }
  return latency_of(group.ways->flows(collective.kind, collective.bytes), collective.bytes);
}

int processors_of(const Collective& collective) {
  int most = 0;
  if (collective.group.ways != nullptr) {
    for (const CoupledFlow& flow : collective.group.ways->flows(collective.kind, collective.bytes)) {
      most = std::max(most, flow.processors);
    }
  }
  return most;
}

} // namespace stagecraft
