// Computations that slow each other down, as cores do that share one memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "sim/replay/replay.hpp"

namespace stagecraft {

/// Replays a graph, `iterations` times in a row, whose computations slow each other down. `slowdowns[work * works +
/// other]` is the factor by which a work takes longer while another device does `other`; with several others the
/// factors multiply. A waiting device slows nobody. Replays repeat until durations follow from the timeline's own
/// overlaps. This ends, since a task's speed depends only on what happens before its end: each repetition makes at
/// least one more event final.
Timeline replay_contended(ReplayFunction engine, const Platform& platform, const TaskGraph& graph, int iterations,
                          std::span<const double> slowdowns);

} // namespace stagecraft
