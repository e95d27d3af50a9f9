// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/collective/algorithm.hpp"
#include "sim/collective/ring.hpp"

namespace stagecraft {
std::string why_no_nvls(CollectiveKind kind, const RankMap& ranks, Router& router) {
  if (kind != CollectiveKind::all_reduce) {
    return "nvls carries all-reduces only";
  }
  if (ranks.nodes.size() > 1) {
    return "its ranks are on several nodes, and nvls works within one";
  }
  const std::vector<DeviceId>& node = ranks.nodes.front();
  const int vertex = common_switch(node, router);
  if (node.size() > 1 && (vertex < 0 || !router.platform().vertices[vertex].reduces)) {
    return "its ranks are on no NVSwitch that reduces";
  }
  return "";
}

// Every rank reads the sum of its r-th from the switch, which reads that r-th of all: n out and n/r in. Then it sends
// the sum, which the switch passes to all: n/r out and n in. So each port carries n + n/r in each direction.
Flows nvls_flows(CollectiveKind, const RankMap& ranks, Router& router) {
  const std::vector<DeviceId>& node = ranks.nodes.front();
  if (node.size() < 2) {
    return {};
  }
  FlowBuilder flow(router, kNcclNvls, ranks.lie());
  HopLatency slowest; // a ring crosses every port once in each direction
  for (std::size_t i = 0; i < node.size(); ++i) {
    slowest = greatest(slowest, flow.hop(node[i], node[(i + 1) % node.size()]));
  }
  const double share = 1 + 1.0 / static_cast<double>(node.size());
  return {flow.finish(share, 2 * slowest, share)};
}

} // namespace stagecraft
