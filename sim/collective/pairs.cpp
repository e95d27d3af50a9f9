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
Flows pairs_of(const std::vector<Place>& all, bool inside, Router& router) {
  FlowBuilder flow(router);
  Seconds latency;
  bool any = false;
  for (std::size_t step = 1; step < all.size(); ++step) {
    Seconds slowest;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Place &from = all[i], &to = all[(i + step) % all.size()];
      if ((from.node == to.node) == inside) {
        slowest = std::max(slowest, flow.hop(from.device, to.device));
        any = true;
      }
    }
    latency += slowest;
  }
  return any ? Flows{flow.finish(1.0 / static_cast<double>(all.size()), latency)} : Flows{};
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
  Flows flows = pairs_of(all, false, router);
  for (CoupledFlow& flow : pairs_of(all, true, router)) {
    flow.beside = !flows.empty();
    flows.push_back(std::move(flow));
  }
  return flows;
}

} // namespace stagecraft
