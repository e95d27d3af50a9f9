// Closed forms of collectives on links of their own; the replay runs them step by step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/base/units.hpp"
#include "sim/platform/route.hpp"

namespace stagecraft {

/// Bytes that each rank of a ring all-reduce sends to its neighbour: 2 (r-1)/r of the buffer (Patarasuk, Yuan 2009).
Bytes ring_all_reduce_bytes(int ranks, Bytes buffer);

/// Latencies of a ring all-reduce: 2 (r-1) steps follow one another.
int ring_all_reduce_steps(int ranks);

/// 2 (r-1)/r * bytes / bandwidth + 2 (r-1) * latency, over the slowest link of the ring.
Seconds ring_all_reduce_time(int ranks, Bytes buffer, const PathCost& slowest);

} // namespace stagecraft
