// Adds edges and ties to a task graph that already has its tasks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "sim/schedule/task_graph/task_graph.hpp"

namespace stagecraft {

/// `to` waits for `from`.
struct Edge {
  TaskId from, to;
};

/// Adds edges, given in any order, after those that the graph has, if any. O(tasks + edges).
void add_edges(TaskGraph& graph, std::span<const Edge> edges);

/// Gives a graph its ties, each with the task that it starts from; those of a task keep their order.
void set_ties(TaskGraph& graph, std::vector<std::pair<TaskId, Tie>> ties);

} // namespace stagecraft
