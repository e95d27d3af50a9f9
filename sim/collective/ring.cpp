// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/ring.hpp"

#include <algorithm>
#include <numeric>

#include "sim/collective/algorithm.hpp"

namespace stagecraft {

std::string why_no_ring(CollectiveKind kind, const RankMap&, Router&) {
  return kind == CollectiveKind::all_to_all ? "a ring carries no all-to-all" : "";
}

HopLatency add_ring(const std::vector<DeviceId>& order, CollectiveKind kind, FlowBuilder& flow) {
  std::vector<HopLatency> hops;
  HopLatency round, longest;
  for (std::size_t i = 0; i < order.size() && order.size() > 1; ++i) {
    hops.push_back(flow.hop(order[i], order[(i + 1) % order.size()]));
    round += hops.back();
  }
  if (kind == CollectiveKind::shift) {
    return std::accumulate(hops.begin(), hops.end(), HopLatency{}, greatest);
  }
  // A piece passes every hop but one when it is added up, and every one but the next when it is passed on. The chain
  // that leaves out the fastest lasts longest.
  const bool both = kind == CollectiveKind::all_reduce;
  for (std::size_t i = 0; i < hops.size(); ++i) {
    const HopLatency left_out = both ? hops[i] + hops[(i + 1) % hops.size()] : hops[i];
    longest = greatest(longest, without((both ? 2 : 1) * round, left_out));
  }
  return longest;
}

namespace {

// Whether a ring that has left a node by one device and comes to `walk` of the next is there sooner from behind: where
// devices of one place are on a rail of their own. NCCL alternates, too (NCCL_CROSS_NIC).
bool is_nearer_from_behind(DeviceId from, const std::vector<DeviceId>& walk, Router& router) {
  const auto hops = [&](DeviceId to) { return router.find(from, to)->legs.front().links.size(); };
  return hops(walk.back()) < hops(walk.front());
}

} // namespace

double ring_share(CollectiveKind kind, int ranks) {
  if (kind == CollectiveKind::shift || kind == CollectiveKind::broadcast) {
    return 1;
  }
  return (kind == CollectiveKind::all_reduce ? 2.0 : 1.0) * (ranks - 1) / ranks;
}

Flows ring_flows(CollectiveKind kind, const RankMap& ranks, Router& router) {
  if (ranks.ranks() < 2) {
    return {};
  }
  const bool among_nodes = kind == CollectiveKind::all_reduce && ranks.nodes.size() > 1;
  const NcclAlgorithm& ring = among_nodes ? kNcclRingBetween : kNcclRing;
  FlowBuilder flow(router, kind == CollectiveKind::shift ? kNcclSends : ring, ranks.lie());
  HopLatency latency;
  for (int channel = 0; channel < ranks.channels(); ++channel) {
    std::vector<DeviceId> order;
    for (std::size_t node = 0; node < ranks.nodes.size(); ++node) {
      std::vector<DeviceId> walk = ranks.walk(node, channel);
      if (!order.empty() && is_nearer_from_behind(order.back(), walk, router)) {
        std::reverse(walk.begin(), walk.end());
      }
      order.insert(order.end(), walk.begin(), walk.end());
    }
    latency = greatest(latency, add_ring(order, kind, flow));
  }
  const double share = ring_share(kind, ranks.ranks());
  const Handed handed = kind == CollectiveKind::broadcast ? Handed::on : Handed::in_turn;
  return {flow.finish(share / ranks.channels(), latency, share, handed)};
}

} // namespace stagecraft
