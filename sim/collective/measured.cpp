// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>

#include "sim/collective/algorithm.hpp"

namespace stagecraft {
namespace {

// By CollectiveKind.
constexpr std::array<std::string_view, kCollectiveKinds> kOps = {
    "all-reduce", "reduce-scatter", "all-gather", "all-to-all", "send-receive", "broadcast", "", ""};

std::optional<CollectiveTimes> times_of(CollectiveKind kind, const std::vector<DeviceId>& node, Router& router) {
  return find_collective(*router.platform().type_of(node.front()).fits, kOps[static_cast<std::size_t>(kind)],
                         static_cast<int>(node.size()));
}

} // namespace

std::string why_not_measured(CollectiveKind kind, const RankMap& ranks, Router& router) {
  if (ranks.nodes.size() > 1) {
    return "its ranks are on several nodes, and times were measured within one";
  }
  const std::vector<DeviceId>& node = ranks.nodes.front();
  const int vertex = common_switch(node, router);
  if (vertex < 0 || router.platform().vertices[vertex].measured_at.value == 0) {
    return "its ranks are on no switch at which times were measured";
  }
  return times_of(kind, node, router)
             ? ""
             : "no " + std::string(kOps[static_cast<std::size_t>(kind)]) + " among " + std::to_string(node.size()) +
                   " devices was measured, nor among both fewer and more";
}

// A table does not say what crossed the links: the bytes are taken to be a ring's, or those of pairs.
Flows measured_flows(CollectiveKind kind, const RankMap& ranks, Router& router) {
  Flows flows = kind == CollectiveKind::all_to_all ? pairs_flows(kind, ranks, router) : ring_flows(kind, ranks, router);
  if (flows.empty()) {
    return flows;
  }
  const Platform& platform = router.platform();
  const std::vector<DeviceId>& node = ranks.nodes.front();
  const BytesPerSecond measured_at = platform.vertices[common_switch(node, router)].measured_at;
  CoupledFlow& flow = flows.front();
  // Where a platform's ports are given another bandwidth, only the bytes take another time.
  const BytesPerSecond bandwidth = flow.leg.bandwidth * (measured_at / narrowest_link(platform, flow.leg));
  flow.measured = MeasuredFlow{platform.type_of(node.front()).fits, *times_of(kind, node, router), bandwidth};
  return flows;
}

} // namespace stagecraft
