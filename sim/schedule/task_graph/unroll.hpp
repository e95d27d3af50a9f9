// Iterations side by side in one graph.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/schedule/task_graph/task_graph.hpp"

namespace stagecraft {

/// A graph whose one iteration is so many of `graph`: task i of iteration n becomes task n * tasks + i, with a work of
/// its own, so that its time can be its own. std::invalid_argument for a graph with a loader, whose ties are no edges.
TaskGraph unroll(const TaskGraph& graph, int iterations);

} // namespace stagecraft
