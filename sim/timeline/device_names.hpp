// What pictures and traces call the devices of a graph.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/schedule/task_graph/task_graph.hpp"

namespace stagecraft {

/// [device of TaskGraph::devices]: its name, with how many devices it stands for where they are several: "node-0/a-1 x
/// 8".
std::vector<std::string> device_names(const TaskGraph& graph, const Platform& platform);

} // namespace stagecraft
