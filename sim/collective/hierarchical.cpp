// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/collective/algorithm.hpp"
#include "sim/collective/direct.hpp"
#include "sim/collective/ring.hpp"
#include "sim/collective/torus_grid.hpp"

namespace stagecraft {
namespace {

// The grids in which the ranks of each node stand on a torus; none where those of one do not.
std::vector<TorusGrid> grids_of(const RankMap& ranks, Router& router) {
  std::vector<TorusGrid> grids;
  for (const std::vector<DeviceId>& node : ranks.nodes) {
    std::optional<TorusGrid> grid = torus_grid(node, router);
    if (!grid || (!grids.empty() && grid->ways() != grids.front().ways())) {
      return {};
    }
    grids.push_back(std::move(*grid));
  }
  return grids;
}

CoupledFlow inside_tori(CollectiveKind kind, const std::vector<TorusGrid>& grids, int in_node, Router& router) {
  FlowBuilder flow(router);
  HopLatency latency;
  for (const TorusGrid& grid : grids) {
    latency = greatest(latency, add_torus(grid, flow));
  }
  const double share = ring_share(kind, in_node) / grids.front().ways();
  return flow.finish(share, latency, share);
}

// Half of an all-reduce inside the nodes: directly where each is a full mesh, over all axes of a torus, else by rings.
CoupledFlow inside(CollectiveKind kind, const RankMap& ranks, Router& router) {
  if (const std::vector<TorusGrid> grids = grids_of(ranks, router); !grids.empty()) {
    return inside_tori(kind, grids, static_cast<int>(ranks.nodes.front().size()), router);
  }
  const std::size_t in_node = ranks.nodes.front().size();
  const bool direct = in_node > 2 && std::all_of(ranks.nodes.begin(), ranks.nodes.end(),
                                                 [&](const auto& node) { return is_full_mesh(node, router); });
  FlowBuilder flow = direct ? FlowBuilder(router) : FlowBuilder(router, kNcclRing, {});
  HopLatency latency;
  for (const std::vector<DeviceId>& node : ranks.nodes) {
    latency = greatest(latency, direct ? add_direct(node, flow) : add_ring(node, kind, flow));
  }
  const double share = direct ? 1 / static_cast<double>(in_node) : ring_share(kind, static_cast<int>(in_node));
  return flow.finish(share, latency, share);
}

// Each rank of a node has its part of the bytes, and a ring of its own over the nodes.
CoupledFlow between(CollectiveKind kind, const RankMap& ranks, Router& router) {
  const std::size_t parts = ranks.nodes.front().size();
  const NcclAlgorithm& ring = kind == CollectiveKind::all_reduce ? kNcclRingBetween : kNcclRing;
  FlowBuilder flow(router, ring, {.nodes = ranks.nodes.size(), .one_each = true});
  HopLatency latency;
  for (std::size_t part = 0; part < parts; ++part) {
    std::vector<DeviceId> order;
    for (const std::vector<DeviceId>& node : ranks.nodes) {
      order.push_back(node[part]);
    }
    latency = greatest(latency, add_ring(order, kind, flow));
  }
  const double share = ring_share(kind, static_cast<int>(ranks.nodes.size())) / static_cast<double>(parts);
  return flow.finish(share, latency, share);
}

} // namespace

std::string why_no_hierarchy(CollectiveKind kind, const RankMap& ranks, Router&) {
  if (kind == CollectiveKind::all_to_all) {
    return "rings carry no all-to-all";
  }
  if (kind == CollectiveKind::broadcast) {
    return "a broadcast goes round one ring";
  }
  const std::size_t inside = ranks.nodes.front().size();
  const bool equal = std::all_of(ranks.nodes.begin(), ranks.nodes.end(),
                                 [&](const std::vector<DeviceId>& node) { return node.size() == inside; });
  return ranks.nodes.size() < 2 || inside < 2 ? "its ranks are not several on each of several nodes"
         : !equal                             ? "its ranks are not equally many on each node"
                                              : "";
}

Flows hierarchical_flows(CollectiveKind kind, const RankMap& ranks, Router& router) {
  Flows flows;
  if (kind != CollectiveKind::all_gather) {
    flows.push_back(inside(CollectiveKind::reduce_scatter, ranks, router));
  }
  flows.push_back(between(kind, ranks, router));
  if (kind != CollectiveKind::reduce_scatter) {
    flows.push_back(inside(CollectiveKind::all_gather, ranks, router));
  }
  return flows;
}

} // namespace stagecraft
