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
  case CollectiveKind::broadcast:
    return {collective.bytes, ranks - 1};
  case CollectiveKind::shift:
  case CollectiveKind::dispatch: // what goes how often where follows from the devices: at least once
  case CollectiveKind::combine:
    return {collective.bytes, 1};
  }
  return {};
}

CollectiveCost cost_of(const Collective& collective) {
  const Group& group = collective.group;
  if (group.ways == nullptr) {
    const Traffic traffic = traffic_of(collective);
    const Seconds latency = group.slowest.latency * traffic.steps;
    return {latency + Seconds{traffic.bytes.value * group.slowest.seconds_per_byte}, latency};
  }
  const Flows& flows = group.ways->flows(collective.kind, collective.bytes);
  CollectiveCost cost{seconds_of(flows, collective.bytes), latency_of(flows, collective.bytes)};
  for (const CoupledFlow& flow : flows) {
    cost.processors = std::max(cost.processors, flow.processors);
  }
  return cost;
}

Seconds seconds_of(const Collective& collective) {
  const Group& group = collective.group;
  return group.ways != nullptr ? seconds_of(group.ways->flows(collective.kind, collective.bytes), collective.bytes)
                               : cost_of(collective).seconds;
}

} // namespace stagecraft
