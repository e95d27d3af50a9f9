// Edges for a task graph whose tasks are there already.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "sim/schedule/task_graph/task_graph.hpp"

namespace stagecraft {

/// `to` waits for `from`.
struct Edge {
  TaskId from, to;
};

/// Adds edges in any order, behind those that the graph has; it may have none at all yet. O(tasks + edges).
void add_edges(TaskGraph& graph, std::span<const Edge> edges);

} // namespace stagecraft
