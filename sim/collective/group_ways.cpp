// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/group_ways.hpp"

namespace stagecraft {

GroupWays::GroupWays(const std::vector<DeviceId>& devices, Router& router, std::string_view wanted) {
  const RankMap ranks = map_ranks(devices, router);
  for (std::size_t kind = 0; kind < ways_.size(); ++kind) {
    ways_[kind] = ways_of(static_cast<CollectiveKind>(kind), ranks, router, wanted);
    for (const Way& way : ways_[kind]) {
      for (const CoupledFlow& flow : way.flows) {
        figures_.insert(figures_.end(), {flow.leg.latency.value, flow.leg.bandwidth.value, flow.share});
      }
    }
  }
}

const Flows& GroupWays::flows(CollectiveKind kind, Bytes buffer) const {
  return fastest_of(ways_[static_cast<std::size_t>(kind)], buffer).flows;
}

} // namespace stagecraft
