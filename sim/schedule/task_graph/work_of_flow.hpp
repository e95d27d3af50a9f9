// The work of a coupled flow of a collective.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "sim/collective/flow.hpp"
#include "sim/schedule/task_graph/task_graph.hpp"

namespace stagecraft {

/// What a flow carries for a buffer of each rank, in whole bytes, sent in the name of a device (an index into
/// TaskGraph::devices) for its stage. `leg`: the flow's own among TaskGraph::legs. `members`: its ranks, among
/// TaskGraph::members.
inline Work work_of_flow(TaskKind kind, std::int32_t device, std::int32_t stage, std::int32_t leg, std::int32_t members,
                         const CoupledFlow& flow, Bytes buffer) {
  const double sent = std::round(flow.sent(buffer).value);
  const Seconds latency = flow.latency(buffer);
  return {.kind = kind,
          .device = device,
          .leg = leg,
          .stage = stage,
          .to_stage = stage,
          .members = members,
          .seconds = latency + Bytes{sent} / flow.leg.bandwidth,
          .latency = latency,
          .bytes = sent,
          .processors = flow.processors};
}

} // namespace stagecraft
