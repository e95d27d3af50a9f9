// Iterations side by side in one graph.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/schedule/task_graph/task_graph.hpp"

namespace stagecraft {

/// A graph of which one iteration is `iterations` iterations of `graph`: task i of iteration n becomes task n * tasks +
/// i, with a work of its own, so that it can have a time of its own. std::invalid_argument for a graph with a loader,
/// whose ties may start from the start of a task, as no edge can.
TaskGraph unroll(const TaskGraph& graph, int iterations);

} // namespace stagecraft
