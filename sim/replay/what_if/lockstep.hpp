// Equal replicas that meet on links at every transfer of a replay, and draws in which they have drifted apart.
// docs/decisions/0016-replicas-drift-apart.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "sim/replay/replay.hpp"

namespace stagecraft {

/// Draws of a graph whose replicas meet; the median one counts.
inline constexpr int kDriftDraws = 5;
/// Standard deviation of a computation's time in a draw, relative to it: the root mean square over the kept real runs,
/// reports/reality. Replicas whose computations take the same up to this are equal.
inline constexpr double kDrift = 0.03;

/// Whether two equal replicas of a stage send, to different receivers, over a link that cannot carry at once what they
/// send. Then they are in lockstep: replayed exactly, they finish together and share the link at every transfer.
/// Gradient reduction, for which replicas wait anyhow, does not count, nor do transfers that one task waits for.
bool replicas_meet(const TaskGraph& graph, const Platform& platform);

/// Whether a draw may gain anything worth its replay, where the exact replay of an iteration takes so long, and so long
/// if each transfer had its links for itself: by more than a thousandth. Computations that are apart cost as much.
bool may_gain(double exact_seconds, double alone_seconds);

/// Draw `draw` of the graph: every computation takes its time give or take kDrift, and all of a device's computations
/// of one kind and stage together take what they take in the graph. The same for the same seed, whatever else is drawn.
TaskGraph drifted(const TaskGraph& graph, std::uint64_t seed, int draw);

/// Whether a drifted replay counts instead of the exact one: where it is faster. Uneven computations slow every run a
/// little, and runs without replicas are replayed without them.
bool gains(double drifted_seconds, double exact_seconds);

/// The index of the median of an odd number of values; of equal ones the first.
int median_index(std::span<const double> values);

} // namespace stagecraft
