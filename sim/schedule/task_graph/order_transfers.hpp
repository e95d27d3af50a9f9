// Transfers that follow one another: what one device sends another over one connection arrives in the order it was
// made.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/schedule/task_graph/task_graph.hpp"

namespace stagecraft {

/// The channels of a graph. A channel is what one sender sends over the same links, in order; gradient reductions have
/// channels of their own, as they have a communicator of their own.
struct Channels {
  std::vector<std::int32_t> of_work;   ///< [work]: its channel, or -1 where it is no transfer
  std::vector<std::int32_t> work_of;   ///< [channel]: the first of its works
  std::vector<std::int32_t> transfers; ///< [channel]: how many tasks it carries in an iteration
};
Channels channels_of(const TaskGraph& graph);

/// Gives each transfer between stages its channel (Work::channel): engines then let the bytes of one follow those of
/// the other, in the order in which they become ready, which is that of the sender's program. Latencies run meanwhile,
/// as on one connection of any network. Without, transfers of one sender share their links whenever they meet.
/// O(works).
void order_transfers(TaskGraph& graph);

/// For runs that are carried out, whose senders wait for a transfer's latency too before they send the next: the graph
/// with an edge from each transfer between stages to the next one of its channel, and no channels any more.
/// O(tasks + edges).
TaskGraph chain_transfers(TaskGraph graph);

} // namespace stagecraft
