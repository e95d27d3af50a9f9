// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/dispatch.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

// Every rank sends to the rank of the same place in each other node, counted round where a node has fewer.
CoupledFlow between_nodes(const RankMap& ranks, Router& router, double copies) {
  FlowBuilder flow(router);
  HopLatency latency;
  for (const std::vector<DeviceId>& from : ranks.nodes) {
    for (const std::vector<DeviceId>& to : ranks.nodes) {
      for (std::size_t place = 0; place < from.size() && &from != &to; ++place) {
        latency = greatest(latency, flow.hop(from[place], to[place % to.size()]));
      }
    }
  }
  return flow.finish(copies / static_cast<double>(ranks.nodes.size() - 1), latency, 0);
}

// Every rank sends to each other one of its node.
CoupledFlow inside_nodes(const RankMap& ranks, Router& router, double copies) {
  FlowBuilder flow(router);
  HopLatency latency;
  std::size_t most = 0;
  for (const std::vector<DeviceId>& node : ranks.nodes) {
    most = std::max(most, node.size());
    for (const DeviceId from : node) {
      for (const DeviceId to : node) {
        latency = from != to ? greatest(latency, flow.hop(from, to)) : latency;
      }
    }
  }
  return flow.finish(copies / static_cast<double>(most - 1), latency, 0);
}

} // namespace

Flows dispatch_flows(CollectiveKind kind, const RankMap& ranks, Router& router, const DispatchTraffic& tokens) {
  const Platform& platform = router.platform();
  const bool across = ranks.nodes.size() > 1;
  const bool within =
      std::any_of(ranks.nodes.begin(), ranks.nodes.end(), [](const auto& node) { return node.size() > 1; });
  const DeviceType& type = platform.type_of(ranks.nodes.front().front());
  std::optional<DispatchLine> line;
  if (type.fits) {
    line = find_dispatch(*type.fits, kind == CollectiveKind::dispatch ? "dispatch" : "combine",
                         static_cast<int>(ranks.nodes.size()), tokens.processors, tokens.kernels);
  }
  const Bytes token = kind == CollectiveKind::dispatch ? tokens.dispatched : tokens.combined;
  Flows flows;
  // A tier that the line has no part for did not hold the kernel up. It does if it is too narrow for its bytes.
  const auto add = [&](CoupledFlow flow, BytesPerSecond measured_at, double part) {
    if (line) {
      LineSegment whole{0, line->start,
                        line->per_token.value / token.value + line->own + tokens.inside * line->inside +
                            tokens.between * line->between};
      BytesPerSecond bandwidth = flow.leg.bandwidth;
      if (part > 0) {
        bandwidth = bandwidth * (measured_at / narrowest_link(platform, flow.leg));
      } else {
        whole.seconds_per_byte = std::max(whole.seconds_per_byte, flow.share / bandwidth.value);
      }
      flow.measured = MeasuredFlow{type.fits, {}, bandwidth, {whole}};
    }
    flow.beside = !flows.empty();
    flow.processors = tokens.processors;
    flows.push_back(std::move(flow));
  };
  if (across) {
    add(between_nodes(ranks, router, tokens.between), line ? line->links.between : BytesPerSecond{0},
        line ? line->between : 0);
  }
  if (within) {
    add(inside_nodes(ranks, router, tokens.inside), line ? line->links.inside : BytesPerSecond{0},
        line ? line->inside : 0);
  }
  return flows;
}

} // namespace stagecraft
