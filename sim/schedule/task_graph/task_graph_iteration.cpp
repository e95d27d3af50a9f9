// The end of an iteration: gradients, optimizers, and the overlap with the next one.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/collective/collective.hpp"
#include "sim/schedule/task_graph/task_graph_builder.hpp"

namespace stagecraft {

TaskId TaskGraphBuilder::add_join(TaskKind kind, int count) {
  graph_.joins += count;
  return add({.kind = kind}, count);
}

// Gradients complete -> all-reduce over replicas -> (barrier) -> optimiser, perhaps that of the next iteration.
void TaskGraphBuilder::finish_iteration() {
  const bool together = request_.barrier && request_.schedule.flushes && !request_.schedule.steps_each_micro_batch;
  const TaskId barrier = together ? add_join(TaskKind::optimizer, 1) : kNone;
  for (int s = 0; s < stages(); ++s) {
    const int degree = cost_.stages[s].tensor_parallel;
    const bool replicated = static_cast<int>(replicas_[s].size()) > degree;
    for (int rank = 0; rank < degree; ++rank) {
      const int steps = request_.schedule.steps_each_micro_batch ? count_of(replicas_[s][rank]) : 1;
      const TaskId reduced = replicated ? add_all_reduce(s, rank, steps) : kNone;
      for (std::size_t i = rank; i < replicas_[s].size(); i += degree) {
        const ReplicaTasks& replica = replicas_[s][i];
        if (barrier != kNone) {
          edge_runs_.push_back({reduced != kNone ? reduced : replica.last, barrier, 1});
          edge_runs_.push_back({barrier, replica.optimizer, 1});
        } else if (reduced != kNone) {
          edge_runs_.push_back({reduced, replica.optimizer, steps});
        }
      }
    }
  }
}

// The task that completes a replica's gradients of the iteration; or, with a step per micro-batch, the block of tasks
// that complete those of each micro-batch.
TaskId TaskGraphBuilder::complete(const ReplicaTasks& replica) const {
  if (!request_.schedule.steps_each_micro_batch) {
    return replica.last;
  }
  return replica.weight != kNone ? replica.weight : replica.backward;
}

// Reduces gradients in a ring over the replicas' shards of one rank, `steps` times an iteration: each sends 2 (r-1)/r
// of the gradients to its neighbour, all at once or bucket by bucket, between two joins. Returns the block of the joins
// at the end.
TaskId TaskGraphBuilder::add_all_reduce(int stage, int rank, int steps) {
  std::vector<const ReplicaTasks*> ring;
  for (std::size_t i = rank; i < replicas_[stage].size(); i += cost_.stages[stage].tensor_parallel) {
    ring.push_back(&replicas_[stage][i]);
  }
  if (ring.front()->parts.empty()) {
    std::vector<TaskId> made;
    for (const ReplicaTasks* replica : ring) {
      made.push_back(complete(*replica));
    }
    const Ring whole = add_ring(stage, ring, cost_.stages[stage].gradients, made, steps);
    follow_itself(whole, steps);
    return whole.end;
  }
  Ring all{kNone, kNone};
  for (std::size_t k = 0; k < ring.front()->parts.size(); ++k) { // one after the other, as on one stream
    std::vector<TaskId> made;
    for (const ReplicaTasks* replica : ring) {
      made.push_back(replica->parts[k]);
    }
    if (k > 0) {
      made.push_back(all.end);
    }
    const Ring one = add_ring(stage, ring, cost_.stages[stage].buckets[k].bytes, made, 1);
    all = {k > 0 ? all.begin : one.begin, one.end};
  }
  follow_itself(all, 1);
  return all.end;
}

// A late step leaves time for a reduction until the next one, which then waits for it, as on one stream.
void TaskGraphBuilder::follow_itself(const Ring& ring, int steps) {
  for (int i = 0; steps_late() && i < steps; ++i) {
    ties_.emplace_back(ring.end + i, Tie{ring.begin + i, 1, false});
  }
}

// Adds one ring that reduces `gradients` once all of `made` have ended.
TaskGraphBuilder::Ring TaskGraphBuilder::add_ring(int stage, const std::vector<const ReplicaTasks*>& ring,
                                                  Bytes gradients, const std::vector<TaskId>& made, int steps) {
  const int ranks = static_cast<int>(ring.size());
  const TaskId begin = add_join(TaskKind::all_reduce, steps);
  const TaskId end = add_join(TaskKind::all_reduce, steps);
  const Traffic traffic = traffic_of({CollectiveKind::all_reduce, {ranks, {}}, gradients});
  const double bytes = std::round(traffic.bytes.value);
  for (const TaskId task : made) {
    edge_runs_.push_back({task, begin, steps});
  }
  for (int i = 0; i < ranks; ++i) {
    const auto sent = add_transfer(TaskKind::all_reduce, ring[i]->device, ring[(i + 1) % ranks]->device, stage, stage,
                                   bytes, traffic.steps, steps);
    edge_runs_.push_back({begin, sent.first, steps});
    edge_runs_.push_back({sent.second, end, steps});
  }
  return {begin, end};
}

// If iterations overlap, an edge from a task that runs ahead of its iteration, or to one that runs after it, leads into
// a later one, and so becomes a tie.
void TaskGraphBuilder::overlap_iterations() {
  graph_.overlaps = true;
  ahead_.resize(graph_.work.size(), 0);
  std::vector<TaskId> maker(graph_.work.size(), kNone);
  for (const EdgeRun& run : edge_runs_) {
    for (int i = 0; i < run.count; ++i) {
      maker[run.to + i] = run.from + i;
    }
  }
  for (TaskId task = 0; task < graph_.tasks(); ++task) { // a transfer runs as far ahead as its maker
    if (maker[task] != kNone && graph_.works[graph_.work[task]].transfers()) {
      ahead_[task] = ahead_[maker[task]];
    }
  }
  std::vector<EdgeRun> runs;
  runs.reserve(edge_runs_.size());
  for (const EdgeRun& run : edge_runs_) {
    for (int i = 0; i < run.count; ++i) {
      const int later = ahead_[run.from + i] - ahead_[run.to + i];
      if (later > 0) {
        ties_.emplace_back(run.from + i, Tie{run.to + i, later, false});
      } else {
        runs.push_back({run.from + i, run.to + i, 1});
      }
    }
  }
  edge_runs_ = std::move(runs);
  graph_.ahead = std::move(ahead_);
}

} // namespace stagecraft
