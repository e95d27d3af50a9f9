// Times of a cluster's parts, each measured alone; and the task graph and platform that run with these times.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// Times measured on parts alone, never on the run that they predict.
struct PartTimes {
  Seconds computation;           ///< what every computation takes beyond the time of its work
  std::vector<PathCost> legs;    ///< [leg]: from the sender's finish to the receiver's start, for one transfer alone
  std::vector<Seconds> works;    ///< [work]: of computations while everything else is idle; empty: as in the graph
  std::vector<double> slowdowns; ///< [device of the graph]: factor by which the work of others slows it; empty: 1
  /// [work * works + other]: the factor by which a work takes longer while another device does `other`. Replaces the
  /// slowdowns, which apply even while the others wait. Empty: not measured.
  std::vector<double> contention;
};

/// The median of each time over several measurements of the same parts, at least one.
PartTimes median(std::span<const PartTimes> measured);

/// The graph with the times of its parts for computations and transfers. Contention is left out, since it depends on
/// what runs at the same time: see replay_contended(). A work that pays a leg's latency several times, as a ring does,
/// keeps the rest of its latency.
TaskGraph with_parts(TaskGraph graph, const PartTimes& parts);

/// The platform with links as fast as measured on the legs that they limit. The bandwidth of the other links changes by
/// the mean ratio.
Platform with_parts(Platform platform, const TaskGraph& graph, const PartTimes& parts);

/// A graph that repeats `timeline`: each task of each iteration becomes a work of its own with the duration that it
/// had, and each transfer gets links of its own. A replay of it shows what dependencies and program order alone make of
/// these durations. Any engine will do; if the graph has channels, take `analytic`, which keeps their order too.
/// std::invalid_argument for a graph with a loader, as unroll() says.
TaskGraph with_durations(const TaskGraph& graph, const Timeline& timeline);

} // namespace stagecraft
