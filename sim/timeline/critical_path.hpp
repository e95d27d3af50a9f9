// Why a timeline is as long as it is: a chain of tasks, each of which waited for the one before.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// A stretch of the chain, in seconds of the timeline; cut off at the beginning of the period.
struct PathStep {
  std::size_t entry = 0; ///< iteration * tasks + task
  double start = 0, finish = 0;
};

/// The last of all inputs that a task waited for.
struct LastInput {
  std::size_t entry = 0; ///< the entry of that input; the task's own if it waited for nothing
  double time = -1;      ///< when that input came, in seconds; -1: the task waited for nothing
};

/// For each entry of the timeline, its last input by edges, ties and channels, without program order. A transfer is
/// released by the one before it on its channel when that one's last byte has entered the channel.
std::vector<LastInput> last_inputs(const TaskGraph& graph, const Timeline& timeline);

/// For each entry of the timeline, the entry that it waited for last, by program order, edges, ties or channels; its
/// own number if it waited for none. If several end at once, it is the one before it in the device's program.
std::vector<std::size_t> last_waited_for(const TaskGraph& graph, const Timeline& timeline);

/// The chain that ends with the last task of the last iteration, over the timeline's last period (Timeline::window
/// iterations), oldest step first. A gap between two steps is time in which no task ran, as on a real machine that
/// hands over.
std::vector<PathStep> critical_path(const TaskGraph& graph, const Timeline& timeline);

/// When the last computation of an iteration ends, in seconds; 0 for iterations before the first.
double end_of_iteration(const TaskGraph& graph, const Timeline& timeline, int iteration);

} // namespace stagecraft
