// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/direct.hpp"

#include <algorithm>
#include <set>

#include "sim/collective/algorithm.hpp"

namespace stagecraft {
namespace {

// Calls visit(from, to) for each two of a node's ranks, both ways.
template <class Visit> void for_each_pair(const std::vector<DeviceId>& node, const Visit& visit) {
  for (const DeviceId from : node) {
    for (const DeviceId to : node) {
      if (from != to) {
        visit(from, to);
      }
    }
  }
}

} // namespace

bool is_full_mesh(const std::vector<DeviceId>& devices, Router& router) {
  std::set<LinkId> links;
  const auto have_link = [&](DeviceId from, DeviceId to) {
    const Route* route = router.find(from, to);
    return route != nullptr && route->legs.size() == 1 && route->legs.front().links.size() == 1 &&
           links.insert(route->legs.front().links.front()).second;
  };
  return std::all_of(devices.begin(), devices.end(), [&](DeviceId from) {
    return std::all_of(devices.begin(), devices.end(), [&](DeviceId to) { return from == to || have_link(from, to); });
  });
}

HopLatency add_direct(const std::vector<DeviceId>& devices, FlowBuilder& flow) {
  HopLatency slowest;
  for_each_pair(devices, [&](DeviceId from, DeviceId to) { slowest = greatest(slowest, flow.hop(from, to)); });
  return slowest;
}

std::string why_not_direct(CollectiveKind kind, const RankMap& ranks, Router& router) {
  if (kind == CollectiveKind::all_to_all || kind == CollectiveKind::shift || kind == CollectiveKind::broadcast) {
    return "direct carries no all-to-alls, which are pairs anyway, and no shifts and broadcasts, which are a ring's";
  }
  if (ranks.nodes.size() > 1) {
    return "its ranks are on several nodes, and direct works within one";
  }
  return is_full_mesh(ranks.nodes.front(), router) ? "" : "not every two of its ranks have a link of their own";
}

// Each rank adds up the r-th that is its own, which it gets from all others at once, and sends the sum to all. So every
// link carries an r-th of the buffer in each half of an all-reduce.
Flows direct_flows(CollectiveKind kind, const RankMap& ranks, Router& router) {
  const std::vector<DeviceId>& node = ranks.nodes.front();
  if (node.size() < 2) {
    return {};
  }
  FlowBuilder flow(router);
  const HopLatency half = add_direct(node, flow);
  const int halves = kind == CollectiveKind::all_reduce ? 2 : 1;
  const double share = halves / static_cast<double>(node.size());
  return {flow.finish(share, halves * half, share)};
}

} // namespace stagecraft
