// Makes tasks of what tensor-parallel groups exchange in their passes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "sim/schedule/task_graph/task_graph.hpp"

namespace stagecraft {

/// A pass of a group as a task graph has it.
struct TimedPass {
  const GroupPass* pass = nullptr;
  const TensorGroup* group = nullptr;
  int stage = 0;
  std::int32_t device = 0;   ///< in whose name the group sends: an index into TaskGraph::devices
  std::int32_t members = -1; ///< the group's devices, among TaskGraph::members
  Seconds before{}, after{}; ///< what each device computes besides, in the same task
};

/// Divides each computation of a pass at its exchanges. An exchange is a task that starts when the last device of the
/// group has come to it, and for which all of them wait; where an algorithm has several flows, one task each.
/// `passes` are those that Work::pass counts. The graph as it was, with TaskGraph::undivided, where that makes more
/// tasks than the request allows.
TaskGraph expand_exchanges(TaskGraph graph, std::span<const TimedPass> passes, const TaskGraphRequest& request);

} // namespace stagecraft
