// Computations that slow each other down, as cores do that share one memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "sim/replay/replay.hpp"

namespace stagecraft {

/// Replays a graph, `iterations` times in a row, whose computations take longer in company. `slowdowns[work * works +
/// other]`: how many times as long a work takes while another device does the other; of several others the product. A
/// device that waits slows nobody. The timeline is the one whose durations follow from its own overlaps: replays repeat
/// until it does. Each repetition sets at least the next event right for good, as a task's speed depends on what
/// happens before its end only.
Timeline replay_contended(ReplayFunction engine, const Platform& platform, const TaskGraph& graph, int iterations,
                          std::span<const double> slowdowns);

} // namespace stagecraft
