// Transfers that follow one another: what one device sends another over one connection arrives in the order in which it
// was made.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/schedule/task_graph/task_graph.hpp"

namespace stagecraft {

/// The channels of a graph. A channel is what one sender sends over the same links, in order; gradient reductions have
/// channels of their own, as they have a communicator of their own.
struct Channels {
  std::vector<std::int32_t> of_work;   ///< [work]: its channel, or -1 if it is no transfer
  std::vector<std::int32_t> work_of;   ///< [channel]: the first of its works
  std::vector<std::int32_t> transfers; ///< [channel]: how many tasks it carries in an iteration
};
Channels channels_of(const TaskGraph& graph);

/// Gives each transfer between stages its channel (Work::channel). Engines then send the bytes of a channel's transfers
/// one after another, in the order in which they become ready, which is that of the sender's program. A latency passes
/// while earlier bytes still flow, as on one connection of any network. Without channels, the transfers of one sender
/// share their links whenever they are in flight together. O(works).
void order_transfers(TaskGraph& graph);

/// The graph for real runs, whose senders also wait for a transfer's latency before they send the next one: each
/// transfer between stages gets an edge to the next one of its channel, and no channels are left. O(tasks + edges).
TaskGraph chain_transfers(TaskGraph graph);

} // namespace stagecraft
