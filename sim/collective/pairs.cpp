// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/collective/algorithm.hpp"

namespace stagecraft {

std::string why_no_pairs(CollectiveKind kind, const RankMap&, Router&) {
  return kind == CollectiveKind::all_to_all ? "" : "pairs carry all-to-alls only";
}

Flows pairs_flows(CollectiveKind, const RankMap& ranks, Router& router) {
  std::vector<DeviceId> all;
  for (const std::vector<DeviceId>& node : ranks.nodes) {
    all.insert(all.end(), node.begin(), node.end());
  }
  if (all.size() < 2) {
    return {};
  }
  FlowBuilder flow(router);
  Seconds latency;
  for (std::size_t step = 1; step < all.size(); ++step) {
    Seconds slowest;
    for (std::size_t i = 0; i < all.size(); ++i) {
      slowest = std::max(slowest, flow.hop(all[i], all[(i + step) % all.size()]));
    }
    latency += slowest;
  }
  return {flow.finish(1.0 / static_cast<double>(all.size()), latency)};
}

} // namespace stagecraft
