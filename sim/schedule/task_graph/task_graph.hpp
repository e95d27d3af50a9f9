// The task graph of one iteration: a schedule's work, the transfers between stages, gradient reduction and optimiser.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/plan/stage_cost/loading.hpp"
#include "sim/plan/stage_cost/passes/group_passes.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

using TaskId = std::int32_t;

/// What all tasks of one kind of work share; most works have one task per micro-batch.
struct Work {
  TaskKind kind = TaskKind::forward;
  std::int32_t device = -1; ///< the computing device, or a transfer's sender: an index into TaskGraph::devices
  std::int32_t leg = -1;    ///< a transfer's leg; -1: a computation, a load, or a join, which takes no time
  std::int32_t node = -1;   ///< the node on whose cores a batch is loaded; -1: not a load
  std::int32_t stage = 0;
  std::int32_t to_stage = 0; ///< a transfer's receiving stage
  std::int32_t channel = -1; ///< the channel of a transfer whose bytes follow those sent before it; -1: none
  std::int32_t members = -1; ///< who takes part in a communication: a list of TaskGraph::members; -1: not known
  Axis axis = Axis::tensor;  ///< of an exchange
  Seconds seconds;           ///< time of a computation or load, or of a transfer that has its links for itself
  Seconds latency;           ///< a transfer's latency, paid before its bytes flow
  double bytes = 0;          ///< a transfer's bytes, a whole number
  int processors = 0;        ///< multiprocessors that a transfer's kernel takes on each member; 0: not known
  bool slows = true;         ///< of a transfer: whether computations beside it may take longer than their times
  /// Of a computation: the parts of its time in which its replica exchanges data and computes nothing, in all and
  /// waiting for latencies; and the leg to its neighbour in the ring of its innermost group, among
  /// TaskGraph::group_legs; -1 where it exchanges nothing.
  double exchanging = 0, exchanging_latency = 0;
  double at_rest = 0; ///< of what it computes without exchanging, the part in which it draws idle power, as good as
  double exchanging_hidden = 0; ///< the part of it in which the group exchanges data and computes
  double handing_over = 0;      ///< the part of its time that its hand-over to other stages takes
  std::array<double, kPassAxes.size()> exchanging_parts{}; ///< of both, by axis; they add up to 1
  std::int32_t group_leg = -1;
  std::int32_t pass = -1; ///< of such a computation: the same number for all devices of the group; -1: no exchange
  double part_begin = 0, part_end = 1; ///< the part of a pass that it is, where gradients are reduced in between
  bool goes_on = false;                ///< goes on with a pass after an exchange that is a task of its own
  std::int32_t steps = -1;             ///< what such a computation does step by step, of TaskGraph::steps; -1: not said
  Bytes acquire, release;              ///< activation memory taken at the start and given back at the end

  bool computes() const { return leg < 0 && device >= 0; }
  bool transfers() const { return leg >= 0; }
  bool loads() const { return node >= 0; } ///< on a host core, which ties reserve for it
};

/// What a pass does that is one task: computations, and flows of its group's exchanges between and beside them.
struct PassSteps {
  /// Flows that begin together, after a computation and when all flows before them have ended.
  struct Exchange {
    std::size_t after = 0;   ///< the computation
    std::vector<Work> flows; ///< alone on their links
  };
  std::vector<PassComputation> computations; ///< `needs` counts those of `exchanges`
  std::vector<Exchange> exchanges;           ///< in the order of their computations; the last one needs all of them
};

/// A dependency that edges cannot express: task `to`, `iterations` later, starts no earlier than the tie's task ends,
/// or, with `from_start`, starts.
struct Tie {
  TaskId to = 0;
  std::int32_t iterations = 0;
  bool from_start = false;
};

/// What a device holds all the time.
struct FixedMemory {
  Bytes weights; ///< all versions
  Bytes gradients, optimizer, buffers;
  Bytes communicators;                                                      ///< their buffers, beside tensors
  Bytes total() const { return weights + gradients + optimizer + buffers; } ///< of tensors
};

/// What a graph's devices and links stand for where replicas that are alike are simulated once (sim/plan/fold.hpp).
/// Everything is empty where each stands for itself.
struct FoldedGraph {
  std::vector<DeviceId> devices;       ///< all in use, in order of their first stage
  std::vector<std::int32_t> simulated; ///< [of these]: which of TaskGraph::devices stands for it
  std::vector<std::int32_t> count;     ///< [device of TaskGraph::devices]: how many it stands for
  std::vector<LinkId> link;            ///< [LinkId]: the one that stands for it
  /// Works whose transfers are under way while nothing else is, and so have no links to share, with those that they
  /// cross.
  std::vector<std::pair<std::int32_t, std::vector<LinkId>>> alone;
};

/// Flat arrays over tasks. A device runs its program in order; a task also waits for all its predecessors. Iterations
/// repeat the graph; program order and ties connect them.
struct TaskGraph {
  std::vector<Work> works;
  std::vector<Leg> legs;                          ///< of transfers
  std::vector<Leg> group_legs;                    ///< inside tensor-parallel groups
  std::vector<std::vector<std::int32_t>> members; ///< of communications: indices into `devices`, ascending
  std::vector<PassSteps> steps;                   ///< of passes, where exchanges slow computations down; each once
  std::vector<std::int32_t> work;                 ///< [task]
  std::vector<std::int32_t> micro_batch;          ///< [task]
  std::vector<std::int32_t> waits;                ///< [task]: number of predecessors
  std::vector<std::int32_t> successor_begin;      ///< [task], and the end
  std::vector<TaskId> successors;
  std::vector<DeviceId> devices;           ///< in use, in order of their first stage
  std::vector<std::int32_t> program_begin; ///< [device], and the end
  std::vector<TaskId> program;
  std::vector<FixedMemory> fixed_memory; ///< [device]
  MemoryReserve reserve;                 ///< what each device holds beside tensors
  int channels = 0;                      ///< number of channels
  int joins = 0;                         ///< tasks that only join others
  bool overlaps = false;                 ///< iterations follow one another without a pause
  std::vector<std::int32_t> ahead;       ///< [task]: iterations that it runs before its own, if they overlap; or empty
  std::vector<std::int32_t> tie_begin;   ///< [task], and the end; empty if there are no ties
  std::vector<Tie> ties;
  int workers = 0, queue = 0;           ///< workers and queue of each loader; 0: no loader, data is always ready
  int cycle = 1;                        ///< iterations after which a loader's pattern repeats
  HostWait host = HostWait::unmodelled; ///< what waiting cores do
  FoldedGraph folded;
  double undivided = 0; ///< tasks that there would be with the exchanges asked for, where these are too many; else 0

  int tasks() const { return static_cast<int>(work.size()); }
  int executed() const { return tasks() - joins; }
  /// All devices in use, also those that others stand for.
  std::span<const DeviceId> devices_in_use() const { return folded.devices.empty() ? devices : folded.devices; }
  /// The device, among TaskGraph::devices, that stands for one of devices_in_use().
  std::size_t simulated(std::size_t in_use) const {
    return folded.devices.empty() ? in_use : static_cast<std::size_t>(folded.simulated[in_use]);
  }
  /// How many devices one of TaskGraph::devices stands for.
  int stands_for(std::size_t device) const { return folded.devices.empty() ? 1 : folded.count[device]; }
  /// What a device holds with so many bytes of tensors.
  Bytes held(std::size_t device, Bytes tensors) const {
    return reserve.with(tensors, fixed_memory[device].communicators);
  }
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
  /// [work]: the number of its tasks.
  std::vector<std::int32_t> tasks_per_work() const;
  /// [iteration * tasks + task]: the number of predecessors, including ties from earlier iterations.
  template <class Count> std::vector<Count> waits_over(int iterations) const; ///< std::int32_t or double
};

/// A forward and a backward, of different micro-batches, that a schedule fuses on a device.
struct FusedPair {
  int forward_stage = 0, backward_stage = 0;
  bool with_weight = true; ///< the gradients of weights are part of it
  DeviceId device = 0;
  Seconds apart; ///< their time one after the other
};
/// Time of such a pair, relative to one after the other.
using FusedPart = std::function<double(const FusedPair& pair)>;

/// Which exchanges of tensor-parallel groups are tasks of their own.
enum class ExchangeTasks {
  none,         ///< each is a part of F, B, R or optimiser step, with the time that it takes alone
  where_shared, ///< those of groups that share a link with anything else; no other exchange can be held up
  all
};

struct DetailRow {
  std::string_view name, help;
  ExchangeTasks exchanges;
};
inline constexpr std::array kDetails = {
    DetailRow{"auto", "exchanges of a tensor-parallel group are tasks where they share a link with anything else",
              ExchangeTasks::where_shared},
    DetailRow{"all", "every exchange is a task", ExchangeTasks::all},
    DetailRow{"blocks", "a stage's computations and exchanges of a pass are one task", ExchangeTasks::none},
};

struct TaskGraphRequest {
  const PlanCost& cost;
  const Schedule& schedule; ///< valid: schedule_defects() finds nothing
  Router& router;
  bool barrier = true; ///< optimiser steps wait for all stages
  bool blocking_sends = false;
  bool early_recompute = true;
  std::string_view all_reduce = kAllReduces[0].name; ///< a row of kAllReduces, or kHopByHop
  ExchangeTasks exchanges = ExchangeTasks::none;
  double most_tasks = 4e7;           ///< beyond it no exchange is a task; some 100 B each
  Sharding sharding = {};            ///< what replicas share
  Offload offload = {};              ///< what devices leave to their hosts
  bool clips_gradients = false;      ///< behind a barrier: by the norm over all devices, as ClippingTimes says
  MemoryReserve reserve = {};        ///< what devices hold beside tensors
  FusedPart fused = nullptr;         ///< empty: 1 for all pairs
  std::span<const int> rank_of = {}; ///< [DeviceId]: its rank in the schedule; empty: as make_task_graph() says
  const Loading* loading = nullptr;  ///< nullptr: data is always ready
};

/// The shared pass behind every schedule: adds transfers (each tensor once per destination device, resharding between
/// unequal replica groups), an all-reduce per replicated stage, the optimiser step, and the loader. Without
/// `rank_of`, rank r is the r-th device if there is a rank per device, and otherwise the devices of stage r.
TaskGraph make_task_graph(const TaskGraphRequest& request);

} // namespace stagecraft
