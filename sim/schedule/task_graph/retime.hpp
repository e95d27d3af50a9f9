// Times that differ from micro-batch to micro-batch, as measured runs have them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "sim/schedule/task_graph/task_graph.hpp"

namespace stagecraft {

/// Gives each forward and backward the seconds that `seconds_of` says; tasks of one kind and stage with equal times
/// share a work. Nothing else changes.
void retime(TaskGraph& graph, const std::function<Seconds(TaskKind kind, int stage, int micro_batch)>& seconds_of);

} // namespace stagecraft
