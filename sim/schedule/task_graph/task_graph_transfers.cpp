// Transfers between stages, and who waits for them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iterator>

#include "sim/schedule/task_graph/task_graph_builder.hpp"

namespace stagecraft {

// Adds the legs between two devices as a chain of blocks of `count` transfers, for the given micro-batches or for all
// in order. Returns {first block, last block}, or none if there is no leg.
std::pair<TaskId, TaskId> TaskGraphBuilder::add_transfer(TaskKind kind, int from_device, int to_device, int from_stage,
                                                         int to_stage, double bytes, int latencies, int count,
                                                         const std::vector<std::int32_t>& micro_batches,
                                                         const Ends& ends) {
  const Route* route = request_.router.find(ends.from, ends.to);
  check(route != nullptr, "two devices of a plan have no route");
  // NCCL's channels for a peer: 32 inside a node, 2 where there are several (collective/algorithm.cpp).
  const std::vector<Device>& devices = request_.router.platform().devices;
  const int processors = devices[ends.from].node == devices[ends.to].node ? 32 : 2;
  std::pair<TaskId, TaskId> blocks{kNone, kNone};
  const std::int32_t members = add_members({from_device, to_device});
  for (const Leg& leg : route->legs) {
    const Seconds latency = leg.latency * latencies;
    const Work work{.kind = kind,
                    .device = from_device,
                    .leg = static_cast<std::int32_t>(graph_.legs.size()),
                    .stage = from_stage,
                    .to_stage = to_stage,
                    .members = members,
                    .seconds = latency + Bytes{bytes} / leg.bandwidth,
                    .latency = latency,
                    .bytes = bytes,
                    .processors = processors};
    graph_.legs.push_back(folded(leg, ends.count));
    const TaskId block = add(work, count);
    std::copy(micro_batches.begin(), micro_batches.end(), graph_.micro_batch.begin() + block);
    if (blocks.first == kNone) {
      blocks.first = block;
    } else {
      edge_runs_.push_back({blocks.second, block, count});
    }
    blocks.second = block;
  }
  return blocks;
}

// Connects the replicas of two stages that share a micro-batch: their shares of it overlap, or both run it in turn.
void TaskGraphBuilder::connect(const StageEdge& edge) {
  const StageCost& sender = cost_.stages[edge.from];
  const StageCost& receiver = cost_.stages[edge.to];
  if (cost_.fold) {
    for (const auto& [part, count] : cost_.fold->pairs[&edge - cost_.edges.data()]) {
      const std::size_t from = static_cast<std::size_t>(part.from) * sender.tensor_parallel;
      const std::size_t to = static_cast<std::size_t>(part.to) * receiver.tensor_parallel;
      connect(edge, {from, to, part.bytes, count},
              common_turns(ranks_of(edge.from, from).front(), ranks_of(edge.to, to).front()));
    }
    return;
  }
  const auto from_degree = static_cast<std::size_t>(sender.tensor_parallel);
  const auto to_degree = static_cast<std::size_t>(receiver.tensor_parallel);
  double from_start = 0;
  for (std::size_t i = 0; i < replicas_[edge.from].size(); i += from_degree) {
    from_start = i / from_degree % sender.in_turn() == 0 ? 0 : from_start;
    const double from_end = from_start + sender.replicas[i].share;
    double to_start = 0;
    for (std::size_t j = 0; j < replicas_[edge.to].size(); j += to_degree) {
      to_start = j / to_degree % receiver.in_turn() == 0 ? 0 : to_start;
      const double to_end = to_start + receiver.replicas[j].share;
      const double overlap = std::min(from_end, to_end) - std::max(from_start, to_start);
      const ReplicaTasks &from = replicas_[edge.from][i], &to = replicas_[edge.to][j];
      const std::vector<std::int32_t> common = common_turns(from, to);
      const bool all = from.turns == nullptr && to.turns == nullptr;
      if (overlap > 1e-12 && (all || !common.empty())) {
        const double bytes = std::round(edge.bytes.value * std::min(overlap, 1.0));
        connect(edge, {i, j, bytes}, common);
      }
      to_start = to_end;
    }
    from_start = from_end;
  }
}

// The micro-batches that both replicas run; empty if both run all.
std::vector<std::int32_t> TaskGraphBuilder::common_turns(const ReplicaTasks& one, const ReplicaTasks& other) const {
  if (one.turns == nullptr || other.turns == nullptr) {
    const Turns* turns = one.turns != nullptr ? one.turns : other.turns;
    return turns != nullptr ? turns->micro_batches : std::vector<std::int32_t>{};
  }
  std::vector<std::int32_t> common;
  std::copy_if(one.turns->micro_batches.begin(), one.turns->micro_batches.end(), std::back_inserter(common),
               [&](std::int32_t m) { return other.turns->place[m] >= 0; });
  return common;
}

// Connects two replicas. Every rank receives what it needs of the tensor, and all ranks of the receiver wait for what
// any of them receives, since they compute together. `common`: the micro-batches that both run; empty: all.
void TaskGraphBuilder::connect(const StageEdge& edge, const Pair& pair, const std::vector<std::int32_t>& common) {
  const StageCost& sender = cost_.stages[edge.from];
  const StageCost& receiver = cost_.stages[edge.to];
  const std::span<const ReplicaTasks> from = ranks_of(edge.from, pair.from), to = ranks_of(edge.to, pair.to);
  const double bytes = pair.bytes;
  const int from_degree = static_cast<int>(from.size());
  const int to_degree = static_cast<int>(to.size());
  const auto count = common.empty() ? micro_batches_ : static_cast<int>(common.size());
  for (int i = 0; i < from_degree; ++i) {
    for (int j = 0; j < to_degree; ++j) {
      const Ends there{sender.device(pair.from + i), receiver.device(pair.to + j), pair.count};
      const Ends back{there.to, there.from, pair.count};
      if (there.from == there.to) {
        continue; // program order keeps them in order
      }
      if (const double part = part_sent(sender, i, receiver, j); part > 0) {
        const auto activation = add_transfer(TaskKind::transfer, from[i].device, to[j].device, edge.from, edge.to,
                                             std::round(bytes * part), 1, count, common, there);
        add_runs(from[i].forward, &from[i], activation.first, nullptr, common);
        for (const ReplicaTasks& replica : to) {
          add_runs(activation.second, nullptr, replica.forward, &replica, common);
        }
      }
      if (const double part = part_sent(receiver, j, sender, i); part > 0) {
        const auto gradient = add_transfer(TaskKind::transfer, to[j].device, from[i].device, edge.to, edge.from,
                                           std::round(bytes * part), 1, count, common, back);
        add_runs(to[j].backward, &to[j], gradient.first, nullptr, common);
        for (const ReplicaTasks& replica : from) {
          wait_for_gradient(replica, gradient.second, common);
        }
      }
    }
  }
}

// Adds edges between two blocks for each micro-batch of `common`. A block of a replica has a task for each of the
// replica's micro-batches, a block of transfers one for each of `common`.
void TaskGraphBuilder::add_runs(TaskId from, const ReplicaTasks* sender, TaskId to, const ReplicaTasks* receiver,
                                const std::vector<std::int32_t>& common) {
  if (common.empty()) {
    edge_runs_.push_back({from, to, micro_batches_});
    return;
  }
  for (std::int32_t n = 0; n < static_cast<std::int32_t>(common.size()); ++n) {
    edge_runs_.push_back({from + (sender != nullptr ? sender->place(common[n]) : n),
                          to + (receiver != nullptr ? receiver->place(common[n]) : n), 1});
  }
}

void TaskGraphBuilder::wait_for_gradient(const ReplicaTasks& replica, TaskId gradient,
                                         const std::vector<std::int32_t>& common) {
  if (replica.recompute == kNone || request_.early_recompute) {
    add_runs(gradient, nullptr, replica.backward, &replica, common);
    return;
  }
  const auto count = common.empty() ? micro_batches_ : static_cast<std::int32_t>(common.size());
  for (std::int32_t n = 0; n < count; ++n) {
    const std::int32_t m = common.empty() ? n : common[n];
    const std::int32_t again = replica.recomputed[m];
    edge_runs_.push_back(
        {gradient + n, again >= 0 ? replica.recompute + again : replica.backward + replica.place(m), 1});
  }
}

// A device computes nothing while one of its sends to another is under way.
void TaskGraphBuilder::block_sends() {
  std::vector<TaskId> next(graph_.work.size(), kNone);
  for (std::size_t device = 0; device < graph_.devices.size(); ++device) {
    const auto program = graph_.program_of(device);
    for (std::size_t at = 0; at + 1 < program.size(); ++at) {
      next[program[at]] = program[at + 1];
    }
  }
  const std::size_t runs = edge_runs_.size();
  for (std::size_t r = 0; r < runs; ++r) {
    const EdgeRun run = edge_runs_[r];
    for (int i = 0; i < run.count; ++i) {
      const Work& to = graph_.works[graph_.work[run.to + i]];
      if (to.transfers() && !is_offload(to.kind) && graph_.works[graph_.work[run.from + i]].computes() &&
          next[run.from + i] != kNone) {
        edge_runs_.push_back({run.to + i, next[run.from + i], 1});
      }
    }
  }
}

} // namespace stagecraft
