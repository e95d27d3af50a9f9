// Transfers that follow one another: what one device sends another over one connection arrives in the order it was
// made. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/schedule/task_graph.hpp"

namespace stagecraft {

/// Transfers of one sender over the same links; those of a gradient reduction go a way of their own, as they have a
/// communicator of their own.
struct Ways {
  std::vector<std::int32_t> of_work;   ///< [work]: its way, or -1 where it is no transfer
  std::vector<std::int32_t> work_of;   ///< [way]: the first of its works
  std::vector<std::int32_t> transfers; ///< [way]: how many tasks go it in an iteration
};
Ways ways_of(const TaskGraph& graph);

/// The graph with an edge from each transfer to the next one of its way, in the order in which the sender's program
/// makes what they carry. Without, transfers of one way share its bandwidth whenever they meet. What reduces gradients
/// is left as it is: its order is in the graph. O(tasks + edges).
TaskGraph order_transfers(TaskGraph graph);

} // namespace stagecraft
