// What loads batches for the first stage.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/schedule/task_graph/task_graph_builder.hpp"

namespace stagecraft {

// Each device of the first stage has a loader: read, load and copy before each of its forwards. Ties model its workers
// and its queue: batch n waits until its worker is done with batch n - workers, and until batch n - queue is taken,
// which is when the forward of that batch starts. Batches come in the order in which the device takes them.
void TaskGraphBuilder::load_batches(const Loading& loading) {
  graph_.workers = loading.workers;
  graph_.queue = loading.queue;
  graph_.host = loading.host;
  const int repeats = std::min(loading.workers, loading.queue);
  graph_.cycle = repeats / std::gcd(repeats, micro_batches_);
  for (std::size_t i = 0; i < replicas_.front().size(); ++i) {
    const ReplicaTasks& replica = replicas_.front()[i];
    const ReplicaLoading& one = loading.replicas[i];
    const int count = count_of(replica);
    const TaskId load = add({.kind = TaskKind::load, .node = one.node, .seconds = one.decode}, replica);
    const TaskId read = add_copies(TaskKind::read, replica, one.disk, one.read);
    const TaskId copy = add_copies(TaskKind::copy, replica, one.copy, one.copied);
    if (read != kNone) {
      edge_runs_.push_back({read, load, count});
    }
    edge_runs_.push_back({load, copy != kNone ? copy : replica.forward, count});
    if (copy != kNone) {
      edge_runs_.push_back({copy, replica.forward, count});
    }
    std::vector<TaskId> taken; // forwards of the stage in program order
    for (const TaskId task : graph_.program_of(replica.device)) {
      if (task >= replica.forward && task < replica.forward + count) {
        taken.push_back(task - replica.forward);
      }
    }
    const TaskId claim = read != kNone ? read : load;
    for (int n = 0; n < count; ++n) {
      const auto tie = [&](TaskId from, int ahead, bool from_start) {
        const TaskId to = claim + taken[(n + ahead) % count];
        ties_.emplace_back(from, Tie{to, (n + ahead) / count, from_start});
      };
      tie(load + taken[n], loading.workers, false);
      tie(replica.forward + taken[n], loading.queue, true);
    }
  }
}

// Adds one transfer per micro-batch for a device's loader; none if it takes no time.
TaskId TaskGraphBuilder::add_copies(TaskKind kind, const ReplicaTasks& replica, const Leg& leg, Bytes bytes) {
  if (bytes.value < 1 || std::isinf(leg.bandwidth.value)) {
    return kNone;
  }
  const auto index = static_cast<std::int32_t>(graph_.legs.size());
  graph_.legs.push_back(leg);
  return add({.kind = kind,
              .device = replica.device,
              .leg = index,
              .seconds = leg.latency + bytes / leg.bandwidth,
              .latency = leg.latency,
              .bytes = bytes.value},
             replica);
}

} // namespace stagecraft
