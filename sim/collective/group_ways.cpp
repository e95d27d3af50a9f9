// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/group_ways.hpp"

#include "sim/collective/dispatch.hpp"

namespace stagecraft {

GroupWays::GroupWays(const std::vector<DeviceId>& devices, Router& router, std::string_view wanted,
                     const DispatchTraffic* tokens) {
  const RankMap ranks = map_ranks(devices, router);
  for (std::size_t number = 0; number < ways_.size(); ++number) {
    const auto kind = static_cast<CollectiveKind>(number);
    if (kind == CollectiveKind::broadcast || (is_of_tokens(kind) && tokens == nullptr)) {
      continue;
    }
    ways_[number] = is_of_tokens(kind) ? std::vector<Way>{{nullptr, dispatch_flows(kind, ranks, router, *tokens)}}
                                       : ways_of(kind, ranks, router, wanted);
    for (const Way& way : ways_[number]) {
      for (const CoupledFlow& flow : way.flows) {
        figures_.insert(figures_.end(), {flow.leg.latency.value, flow.leg.bandwidth.value, flow.share,
                                         static_cast<double>(flow.processors)});
        for (const LineSegment& line : flow.measured ? flow.measured->lines : std::vector<LineSegment>{}) {
          figures_.insert(figures_.end(), {line.start.value, line.seconds_per_byte});
        }
      }
    }
  }
}

const Flows& GroupWays::flows(CollectiveKind kind, Bytes buffer) const {
  return fastest_of(ways_[static_cast<std::size_t>(kind)], buffer).flows;
}

} // namespace stagecraft
