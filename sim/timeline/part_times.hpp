// What each part of a cluster takes while it is alone, measured; and a task graph as these parts should run it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// Measured on parts alone, never on the run that is predicted with them.
struct PartTimes {
  Seconds computation;           ///< that every computation takes beyond what its work says
  std::vector<PathCost> legs;    ///< [leg]: from the sender's finish to the receiver's start, one transfer alone
  std::vector<Seconds> works;    ///< [work]: of computations while all else rests; empty: what the graph says
  std::vector<double> slowdowns; ///< [device of the graph]: by what the others do beside it; empty: 1
  /// [work * works + other]: how many times as long a work takes while another device does the other, instead of the
  /// slowdowns, which hold whether or not the others wait; empty: not measured.
  std::vector<double> contention;
};

/// Of several measurements of the same parts, at least one, the median of each time.
PartTimes median(std::span<const PartTimes> measured);

/// The graph with computations and transfers as the parts take them, but for contention, which is a matter of time: an
/// engine's, replay_contended(). A work that pays a leg's latency several times, as
/// a ring does, keeps the rest of its latency.
TaskGraph with_parts(TaskGraph graph, const PartTimes& parts);

/// The platform with links as wide as the legs that they bound measured; the others keep their proportion to those.
Platform with_parts(Platform platform, const TaskGraph& graph, const PartTimes& parts);

/// A graph that is `timeline` told again: each task of each iteration a work of its own that takes as long as it did,
/// transfers on links of their own. Replayed on any engine it says what dependencies and program order alone make of
/// the durations; where the graph has channels, on engine `analytic`, by which their order is kept too.
/// std::invalid_argument for a graph with a loader, whose ties are no edges.
TaskGraph with_durations(const TaskGraph& graph, const Timeline& timeline);

} // namespace stagecraft
