// Where a replay's clock starts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/replay/replay.hpp"

namespace stagecraft {

/// A power of two, in seconds, so far beyond the times of a request that all clock values up to twice as late are
/// rounded alike. So a replay does not depend on what ran before it on the same clock, nor on the order of its sums.
double clock_start(const ReplayRequest& request);

/// Whether the many events of a long graph would be rounded too much on a clock that has room for other graphs, too:
/// then its own starts earlier.
bool has_own_clock(const ReplayRequest& request);

} // namespace stagecraft
