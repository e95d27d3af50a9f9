// A ring as a part of other algorithms.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/collective/collective.hpp"
#include "sim/collective/flow.hpp"

namespace stagecraft {

/// Adds the hops of a ring in this order; returns the latency of the longest chain of hops, 2 (r-1) of them in an
/// all-reduce, r-1 in one of its halves and in a broadcast.
HopLatency add_ring(const std::vector<DeviceId>& order, CollectiveKind kind, FlowBuilder& flow);

/// Bytes over each hop for each byte of a rank's buffer: 2 (r-1)/r of an all-reduce, (r-1)/r of one of its halves, 1 of
/// a shift and a broadcast.
double ring_share(CollectiveKind kind, int ranks);

} // namespace stagecraft
