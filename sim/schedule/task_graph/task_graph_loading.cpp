// What loads batches for the first stage.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/schedule/task_graph/task_graph_builder.hpp"

namespace stagecraft {

// Each device of the first stage has a loader: read, load and copy before each of its forwards. The ties keep its
// workers and its queue: batch n waits until its worker is done with batch n - workers, and until batch n - queue is
// taken, which is when that one's forward starts. Batches come in the order in which the device takes them.
void TaskGraphBuilder::load_batches(const Loading& loading) {
  graph_.workers = loading.workers;
  graph_.queue = loading.queue;
  graph_.host = loading.host;
  const int repeats = std::min(loading.workers, loading.queue);
  graph_.cycle = repeats / std::gcd(repeats, micro_batches_);
  for (std::size_t replica = 0; replica < lanes_.front().size(); ++replica) {
    const Lane& lane = lanes_.front()[replica];
    const ReplicaLoading& one = loading.replicas[replica];
    const int count = count_of(lane);
    const TaskId load = add({.kind = TaskKind::load, .node = one.node, .seconds = one.decode}, lane);
    const TaskId read = add_copies(TaskKind::read, lane, one.disk, one.read);
    const TaskId copy = add_copies(TaskKind::copy, lane, one.copy, one.copied);
    if (read != kNone) {
      runs_.push_back({read, load, count});
    }
    runs_.push_back({load, copy != kNone ? copy : lane.forward, count});
    if (copy != kNone) {
      runs_.push_back({copy, lane.forward, count});
    }
    std::vector<TaskId> taken; // forwards of the stage in program order
    for (const TaskId task : graph_.program_of(lane.device)) {
      if (task >= lane.forward && task < lane.forward + count) {
        taken.push_back(task - lane.forward);
      }
    }
    const TaskId claim = read != kNone ? read : load;
    for (int n = 0; n < count; ++n) {
      const auto tie = [&](TaskId from, int ahead, bool from_start) {
        const TaskId to = claim + taken[(n + ahead) % count];
        ties_.emplace_back(from, Tie{to, (n + ahead) / count, from_start});
      };
      tie(load + taken[n], loading.workers, false);
      tie(lane.forward + taken[n], loading.queue, true);
    }
  }
}

// One transfer per micro-batch for a device's loader; none where it takes no time.
TaskId TaskGraphBuilder::add_copies(TaskKind kind, const Lane& lane, const Leg& leg, Bytes bytes) {
  if (bytes.value < 1 || std::isinf(leg.bandwidth.value)) {
    return kNone;
  }
  const auto index = static_cast<std::int32_t>(graph_.legs.size());
  graph_.legs.push_back(leg);
  return add({.kind = kind,
              .device = lane.device,
              .leg = index,
              .seconds = leg.latency + bytes / leg.bandwidth,
              .latency = leg.latency,
              .bytes = bytes.value},
             lane);
}

} // namespace stagecraft
