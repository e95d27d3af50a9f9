// Why a timeline is as long as it is: the chain of tasks each of which waited for the one before.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// A stretch of the chain, in seconds of the timeline; where it begins with the period, only what lies within.
struct PathStep {
  std::size_t entry = 0; ///< iteration * tasks + task
  double start = 0, finish = 0;
};

/// What came last of all that a task waited for.
struct LastInput {
  std::size_t entry = 0; ///< its own where it waited for nothing
  double time = -1;      ///< when it let the task go, s; -1: nothing did
};

/// For each entry of the timeline its last input by edges, ties and channels, program order aside. What a channel
/// carries before a transfer lets it go when its own last byte has entered it.
std::vector<LastInput> last_inputs(const TaskGraph& graph, const Timeline& timeline);

/// For each entry of the timeline the entry that it waited for last, by program order, edges, ties or channels; its own
/// number where it waited for none. Of several that end at once the one that stands first in the device's program.
std::vector<std::size_t> last_waited_for(const TaskGraph& graph, const Timeline& timeline);

/// The chain that ends with the last task of the last iteration, over the timeline's last period (Timeline::window
/// iterations), oldest first. What lies between two steps nobody worked on, as on a real machine that hands over.
std::vector<PathStep> critical_path(const TaskGraph& graph, const Timeline& timeline);

/// The end of the last computation of an iteration; 0 for iterations before the first.
double end_of_iteration(const TaskGraph& graph, const Timeline& timeline, int iteration);

} // namespace stagecraft
