// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "sim/collective/algorithm.hpp"

namespace stagecraft {
namespace {

// A rank with its node.
struct Place {
  DeviceId device;
  std::size_t node;
};

// The pairs inside nodes, or those across. In step s each rank sends to the s-th after it; the slowest pair of a step
// holds it up. Nothing where there is no such pair.
Flows pairs_of(const std::vector<Place>& all, bool inside, const NcclGroup& group, Router& router) {
  const bool at_once = all.size() <= kNcclSendsAtOnce + 1;
  FlowBuilder flow = at_once ? FlowBuilder(router, kNcclSends, group) : FlowBuilder(router);
  HopLatency latency, slowest_of_all;
  int steps = 0;
  for (std::size_t step = 1; step < all.size(); ++step) {
    HopLatency slowest;
    bool any = false;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Place &from = all[i], &to = all[(i + step) % all.size()];
      if ((from.node == to.node) == inside) {
        slowest = greatest(slowest, flow.hop(from.device, to.device));
        any = true;
      }
    }
    latency += slowest;
    slowest_of_all = greatest(slowest_of_all, slowest);
    steps += any ? 1 : 0;
  }
  if (steps == 0) {
    return {};
  }
  latency.nccl = slowest_of_all.nccl; // no send of the library waits for another
  const auto size = static_cast<double>(all.size());
  return {flow.finish(1 / size, latency, static_cast<double>(steps) / size)};
}

} // namespace

std::string why_no_pairs(CollectiveKind kind, const RankMap&, Router&) {
  return kind == CollectiveKind::all_to_all ? "" : "pairs carry all-to-alls only";
}

// The network and the links inside nodes carry their pairs beside each other, each as fast as it can.
Flows pairs_flows(CollectiveKind, const RankMap& ranks, Router& router) {
  std::vector<Place> all;
  for (std::size_t node = 0; node < ranks.nodes.size(); ++node) {
    for (const DeviceId device : ranks.nodes[node]) {
      all.push_back({device, node});
    }
  }
  Flows flows = pairs_of(all, false, ranks.lie(), router);
  for (CoupledFlow& flow : pairs_of(all, true, ranks.lie(), router)) {
    flow.beside = !flows.empty();
    flows.push_back(std::move(flow));
  }
  return flows;
}

} // namespace stagecraft
