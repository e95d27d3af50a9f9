// The task graph of one iteration: a schedule's work, the transfers between stages, gradient reduction and optimiser.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/loading.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

using TaskId = std::int32_t;

/// What all tasks of one kind of work share; most works have one task per micro-batch.
struct Work {
  TaskKind kind = TaskKind::forward;
  std::int32_t device = -1; ///< index into TaskGraph::devices of the computing device; of the sender for a transfer
  std::int32_t leg = -1;    ///< of a transfer; -1: computation, or a join that takes no time
  std::int32_t node = -1;   ///< whose core a batch is loaded on
  std::int32_t stage = 0;
  std::int32_t to_stage = 0; ///< of a transfer
  std::int32_t channel = -1; ///< of a transfer whose bytes follow those sent before it in its channel; -1: of any other
  Seconds seconds;           ///< of a computation or load; of a transfer that has its links for itself
  Seconds latency;           ///< of a transfer, paid before its bytes flow
  double bytes = 0;          ///< of a transfer, a whole number
  Bytes acquire, release;    ///< activation memory taken at the start and given back at the end

  bool computes() const { return leg < 0 && device >= 0; }
  bool transfers() const { return leg >= 0; }
  bool loads() const { return node >= 0; } ///< on a host core, which ties keep for it
};

/// An order that edges cannot say: task `to`, `iterations` later, starts no earlier than another ends, or starts.
struct Tie {
  TaskId to = 0;
  std::int32_t iterations = 0;
  bool from_start = false;
};

/// What a device holds all the time.
struct FixedMemory {
  Bytes weights; ///< all versions
  Bytes gradients, optimizer, buffers;
  Bytes total() const { return weights + gradients + optimizer + buffers; }
};

/// Flat arrays over tasks. A device runs its program in order; a task also waits for all tasks that it succeeds.
/// Iterations repeat the graph: they are bound by program order, and by ties where there is a loader.
struct TaskGraph {
  std::vector<Work> works;
  std::vector<Leg> legs;                     ///< of transfers
  std::vector<std::int32_t> work;            ///< [task]
  std::vector<std::int32_t> micro_batch;     ///< [task]
  std::vector<std::int32_t> waits;           ///< [task]: number of predecessors
  std::vector<std::int32_t> successor_begin; ///< [task], and the end
  std::vector<TaskId> successors;
  std::vector<DeviceId> devices;           ///< in use, in order of their first stage
  std::vector<std::int32_t> program_begin; ///< [device], and the end
  std::vector<TaskId> program;
  std::vector<FixedMemory> fixed_memory; ///< [device]
  int channels = 0;                      ///< on which transfers follow one another
  int joins = 0;                         ///< tasks that only join others
  bool overlaps = false;                 ///< iterations follow one another without a pause
  std::vector<std::int32_t> ahead;     ///< [task]: iterations that it runs before its own, where they overlap; or empty
  std::vector<std::int32_t> tie_begin; ///< [task], and the end; empty where there are no ties
  std::vector<Tie> ties;
  int workers = 0, queue = 0;           ///< of each loader; 0: data is at hand
  int cycle = 1;                        ///< iterations after which a loader's pattern repeats
  HostWait host = HostWait::unmodelled; ///< what waiting cores do

  int tasks() const { return static_cast<int>(work.size()); }
  int executed() const { return tasks() - joins; }
  std::span<const TaskId> successors_of(TaskId task) const {
    return {successors.data() + successor_begin[task], successors.data() + successor_begin[task + 1]};
  }
  std::span<const TaskId> program_of(std::size_t device) const {
    return {program.data() + program_begin[device], program.data() + program_begin[device + 1]};
  }
  std::span<const Tie> ties_of(TaskId task) const {
    return tie_begin.empty() ? std::span<const Tie>{}
                             : std::span{ties.data() + tie_begin[task], ties.data() + tie_begin[task + 1]};
  }
  /// Of each iteration and task the number of predecessors, ties from earlier iterations among them.
  template <class Count> std::vector<Count> waits_over(int iterations) const; ///< std::int32_t or double
};

struct TaskGraphRequest {
  const PlanCost& cost;
  const Schedule& schedule; ///< valid: schedule_defects() finds nothing
  Router& router;
  bool barrier = true; ///< optimiser steps wait for all stages
  bool blocking_sends = false;
  bool early_recompute = true;
  double fused = 1;                  ///< time of a fused forward and backward, in parts of both one after the other
  std::span<const int> rank_of = {}; ///< [DeviceId]: its rank in the schedule; empty: as make_task_graph() says
  const Loading* loading = nullptr;  ///< nothing: data is at hand
};

/// The shared pass behind every schedule: adds transfers (each tensor once per destination device, resharding between
/// unequal replica groups), a ring all-reduce per replicated stage, the optimiser step, and the loader. Unless told,
/// rank r is the r-th device where there is a rank per device, else the devices of stage r.
TaskGraph make_task_graph(const TaskGraphRequest& request);

} // namespace stagecraft
