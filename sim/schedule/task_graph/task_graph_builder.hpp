// Builds a task graph: the works of stages, the transfers between them, the order of each device, the end of an
// iteration.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/collective/algorithm.hpp"
#include "sim/plan/stage_cost/sharing_groups.hpp"
#include "sim/schedule/pace.hpp"
#include "sim/schedule/task_graph/expand_exchanges.hpp"
#include "sim/schedule/task_graph/task_graph.hpp"

namespace stagecraft {

/// The part of a task's time in which its device waits for its host to launch kernels.
double part_at_rest(const ReplicaCost& cost, TaskKind kind);

/// One graph, for make_task_graph(). Tasks are added in blocks, one task per micro-batch; edges are collected as runs
/// and written last.
class TaskGraphBuilder {
public:
  explicit TaskGraphBuilder(const TaskGraphRequest& request)
      : request_(request), cost_(request.cost), micro_batches_(request.schedule.micro_batches),
        numbers_(request.schedule.micro_batches) {
    std::iota(numbers_.begin(), numbers_.end(), 0);
  }

  TaskGraph build();

private:
  static constexpr TaskId kNone = -1;

  // The micro-batches of a replica that takes whole ones in turn.
  struct Turns {
    std::vector<std::int32_t> micro_batches; // ascending
    std::vector<std::int32_t> place;         // [micro-batch]: its place among them, or -1
  };

  // The tasks of a stage on one device, a replica or a shard of one: blocks of one task per micro-batch that it runs.
  struct ReplicaTasks {
    int device = 0; // index into the graph's devices
    TaskId forward = kNone, backward = kNone, weight = kNone, recompute = kNone, optimizer = kNone;
    TaskId norm = kNone;                  // of its gradients, where they are clipped
    TaskId last = kNone;                  // task after which the stage's gradients are complete
    TaskId host_step = kNone;             // of what the host steps
    TaskId landed = kNone;                // takes no time: when the host's weights are back
    std::vector<TaskId> parts;            // tasks of the last backward, one per bucket of gradients; empty: undivided
    std::int32_t group_leg = -1;          // as in Work
    std::int32_t passes = -1;             // the first of the replica's among the passes; -1: it exchanges nothing
    const Turns* turns = nullptr;         // nullptr: all micro-batches
    std::vector<std::int32_t> recomputed; // [micro-batch]: its place in the block of R, or -1; empty: no R
    // Where passes are divided into units: [UnitPass], the blocks that follow the first one, as they run.
    std::array<std::vector<TaskId>, 4> later_units;

    TaskId stepped() const { return landed != kNone ? landed : optimizer; }
    std::int32_t place(std::int32_t micro_batch) const {
      return turns != nullptr ? turns->place[micro_batch] : micro_batch;
    }
  };

  // Edges are collected as runs: `count` edges from task `from + i` to task `to + i`.
  struct EdgeRun {
    TaskId from, to;
    std::int32_t count;
  };

  // How B changes the memory of a micro-batch that holds `all`. `more`: what B takes, if W needs more than `all`;
  // `less`: what B frees otherwise; `rest`: what W frees.
  struct BackwardMemory {
    Bytes more, less, rest;
  };

  int stages() const { return static_cast<int>(cost_.stages.size()); }
  bool steps_late() const { return pace_of(request_.schedule).steps_late; }

  // task_graph.cpp
  void list_devices();
  void fold_devices(const Fold& fold);
  const StageFold* fold_of(int stage) const { return cost_.fold ? &cost_.fold->stages[stage] : nullptr; }
  std::size_t simulated(int stage, std::size_t device) const;
  std::vector<std::size_t> simulated_among(int stage, const std::vector<std::size_t>& members) const;
  Leg folded(const Leg& leg, std::int32_t count) const;
  void reserve();
  TaskId add(const Work& work, int count);
  std::int32_t add_members(std::vector<std::int32_t> members);
  void write_edges();

  // task_graph_replicas.cpp: the works of each stage's replicas: forwards, backwards, recompute
  void make_replicas();
  void read_orders(int stage, ReplicaTasks& replica);
  int count_of(const ReplicaTasks& replica) const;
  TaskId add(const Work& work, const ReplicaTasks& replica);
  BackwardMemory backward_memory(const StageMemory& memory, Bytes all) const;
  std::int32_t add_group_leg(int stage, const ReplicaCost& cost);
  enum class Pass { forward, backward, backward_input, recompute, optimizer };
  static constexpr int kPasses = 5;
  void list_teams(int stage);
  void list_passes(int stage, std::size_t device, ReplicaTasks& replica);
  void note_exchange(std::optional<Pass> pass, const ReplicaTasks& replica, Work& work) const;
  void fill_replica(int stage, const ReplicaCost& cost, ReplicaTasks& replica);
  void add_recompute(const Work& work, const StageMemory& memory, ReplicaTasks& replica);
  const ReplicaTasks* replica_on(int stage, int device) const;
  std::size_t rank_of(int device) const;

  // task_graph_transfers.cpp: transfers between stages, and who waits for them
  // The devices whose route transfers take, and how many of these are alike.
  struct Ends {
    DeviceId from, to;
    std::int32_t count = 1;
  };
  std::pair<TaskId, TaskId> add_transfer(TaskKind kind, int from_device, int to_device, int from_stage, int to_stage,
                                         double bytes, int latencies, int count,
                                         const std::vector<std::int32_t>& micro_batches, const Ends& ends);
  void connect(const StageEdge& edge);
  std::vector<std::int32_t> common_turns(const ReplicaTasks& one, const ReplicaTasks& other) const;
  // Two replicas that exchange data, by the place of their first devices among all of their stages, and how many pairs
  // are alike.
  struct Pair {
    std::size_t from = 0, to = 0;
    double bytes = 0;
    std::int32_t count = 1;
  };
  void connect(const StageEdge& edge, const Pair& pair, const std::vector<std::int32_t>& common);
  std::span<const ReplicaTasks> ranks_of(int stage, std::size_t first) const {
    return {replicas_[stage].data() + simulated(stage, first),
            static_cast<std::size_t>(cost_.stages[stage].tensor_parallel)};
  }
  void add_runs(TaskId from, const ReplicaTasks* sender, TaskId to, const ReplicaTasks* receiver,
                const std::vector<std::int32_t>& common);
  void wait_for_gradient(const ReplicaTasks& replica, TaskId gradient, const std::vector<std::int32_t>& common);
  void block_sends();

  // task_graph_programs.cpp: what each device runs, in which order, and which actions form one task
  TaskId task_of(const ReplicaTasks& replica, TaskKind kind, std::int32_t micro_batch) const {
    switch (kind) {
    case TaskKind::forward:
      return replica.forward + replica.place(micro_batch);
    case TaskKind::backward:
      return replica.backward + replica.place(micro_batch);
    case TaskKind::weight:
      return replica.weight + replica.place(micro_batch);
    default:
      return replica.recompute + replica.recomputed[micro_batch];
    }
  }
  void write_programs();
  TaskId task_after(TaskId before, const Action& action, ReplicaTasks& replica, std::int32_t micro_batch);
  void write_program(const std::vector<Action>& order, const std::vector<ReplicaTasks*>& replica_of);
  void divide_last(ReplicaTasks& replica, const std::vector<GradientBucket>& buckets);
  void set_ahead(TaskId task, int iterations);
  // Whether gradients of weights may wait until all backwards of an iteration have run.
  bool defers() const {
    const Schedule& schedule = request_.schedule;
    return schedule.flushes && !schedule.splits_backward && !schedule.steps_each_micro_batch;
  }
  void write_deferred(ReplicaTasks& replica);
  void write_optimizer(int stage, ReplicaTasks& replica);
  void write_norm(int stage, ReplicaTasks& replica);
  void join_fused();
  TaskId first_of(const std::vector<TaskId>& group, TaskKind kind) const;
  void shorten_fused(const std::vector<TaskId>& head);

  // task_graph_iteration.cpp: the end of an iteration: gradients, optimizers, and the overlap with the next one
  TaskId add_join(TaskKind kind, int count);
  bool steps_together() const;
  bool clips() const { return request_.clips_gradients && steps_together(); }
  void finish_iteration();
  void add_up_norms(TaskId barrier);
  TaskId complete(const ReplicaTasks& replica) const;
  // Parameters of all layers but experts', or of these; or, where they are gathered, those of the latter that are late.
  enum class Whose { dense, experts, late_experts };
  // Replicas of a rank that hold the same parameters, by groups that share them; those that are simulated.
  std::vector<FoldedSharing> groups_that_share(int stage, int rank, Whose whose) const;
  TaskId reduce_gradients(int stage, int rank, int steps);
  void gather_parameters(int stage, int rank);
  void gather_in_groups(int stage, int rank);
  struct Reduction {
    TaskId begin, end; // blocks of joins
  };
  // Who reduces gradients or gathers parameters together, and in which ways they can; no way: hop by hop.
  struct Reducers {
    TaskKind kind;
    std::vector<const ReplicaTasks*> replicas;           // that are simulated
    std::vector<Way> ways;                               // among all
    std::int32_t count = 1;                              // groups that are alike
    bool alone = false;                                  // whether nothing else is under way meanwhile
    std::vector<StepsAlike> one_by_one = {StepsAlike{}}; // parts of the bytes, a collective each
  };
  static CollectiveKind collective_of(TaskKind kind);
  TaskKind gathering_after_step() const;
  bool is_simulated(const std::vector<DeviceId>& devices) const;
  Reducers reducers_of(int stage, int rank, TaskKind kind) const;
  std::vector<Reducers> reducers_of_experts(int stage, int rank, TaskKind kind) const;
  Reduction reduce_dense_and_experts(int stage, const Reducers& dense, const std::vector<Reducers>& experts,
                                     const GradientBucket& bytes, const std::vector<TaskId>& made, int steps);
  Reduction reduce_in_groups(int stage, int rank, const GradientBucket& bytes, const std::vector<TaskId>& made,
                             int steps);
  TaskId add_up_alike(int stage, const FoldedSharing& alike, Bytes bytes, TaskId made, int steps);
  std::vector<FoldedGroup> folded_expert_groups(int stage, int rank) const;
  Reducers reducers_among(int stage, const FoldedGroup& group, TaskKind kind) const;
  Reduction add_reduction(int stage, const Reducers& reducers, Bytes bytes, const std::vector<TaskId>& made, int steps,
                          Seconds kernels = Seconds{0});
  void add_flows(int stage, const Reducers& reducers, Bytes bytes, const Reduction& reduction, int steps,
                 Seconds kernels);
  void add_hops(int stage, const Reducers& reducers, Bytes bytes, const Reduction& reduction, int steps);
  void follow_itself(const Reduction& reduction, int steps);
  void overlap_iterations();

  // task_graph_units.cpp: passes unit by unit
  bool has_units() const;
  void divide_by_units(int stage, ReplicaTasks& replica);
  void divide_block(TaskId block, int count, std::vector<double> parts, bool backward, std::vector<TaskId>& later);
  TaskId write_units(TaskKind kind, ReplicaTasks& replica, std::int32_t micro_batch);
  void weave_recompute(std::size_t units);
  TaskId last_of_unit(const ReplicaTasks& replica, std::size_t unit) const;
  void list_unit_steps();
  std::vector<UnitStep> unit_steps(const std::vector<std::int32_t>& places) const;
  UnitPass completes() const { return request_.schedule.splits_backward ? UnitPass::weight : UnitPass::backward; }
  void queue_up(int stage, TaskKind kind, const std::vector<std::size_t>& members, std::size_t step, Reduction made);
  void order_queues();
  void insert_into_programs();

  // task_graph_unit_collectives.cpp: what gathers units' weights and reduces their gradients
  TaskId reduced_by_unit(int stage, int rank);
  // Time that a unit's kernels add to a collective.
  using KernelTime = Seconds (*)(const UnitKernels& kernels);
  std::vector<Reduction> add_unit_collectives(int stage, const Reducers& reducers,
                                              const std::vector<std::int32_t>& steps, const std::vector<char>& chosen,
                                              double part, Whose whose, KernelTime kernels = nullptr);
  void leave_out_empty(int stage, TaskKind kind, Whose whose, const std::vector<std::int32_t>& steps,
                       std::vector<char>& chosen) const;
  void gather_units(int stage, const FoldedGroup& all, Whose whose, const std::vector<char>& gathers, bool again);
  void use_gathered(int stage, const ReplicaTasks& replica, std::int32_t at, TaskId gathered);
  void gather_for(int stage, const FoldedGroup& all, Whose whose);
  std::vector<FoldedGroup> folded_in(int stage, std::vector<std::vector<std::size_t>> parts,
                                     const FoldedGroup& of) const;
  std::vector<Reduction> reduce_in_two_hops(int stage, const FoldedGroup& all, const std::vector<std::int32_t>& steps,
                                            const std::vector<char>& reduces, Whose whose);
  std::vector<Reduction> reduce_units(int stage, const FoldedGroup& all, Whose whose, TaskKind kind);
  std::vector<Reduction> share_among(int stage, int rank, const FoldedGroup& group, Whose whose, bool leaves);
  void share_experts(int stage, int rank);
  void share_in_groups(int stage, int rank, const FoldedSharing& alike, Whose whose);
  void add_up_groups(int stage, int rank, const FoldedSharing& alike,
                     const std::vector<std::vector<Reduction>>& of_groups, Whose whose);
  void share_units();
  void share_stage(int stage);

  // task_graph_offload.cpp: what devices leave to their hosts
  const HostCost* host_of(int stage, std::size_t device) const {
    return cost_.stages[stage].replicas[device].host.get();
  }
  TaskId add_copy(TaskKind kind, int stage, std::size_t device, Bytes bytes, int count = 1);
  void queue_copy(TaskKind kind, int stage, std::size_t device, std::int32_t place, TaskId copy);
  bool leaves_by_unit(int stage) const;
  void write_host_step(int stage, ReplicaTasks& replica);
  void step_on_host(int stage, std::size_t device, TaskId complete, TaskId barrier);
  void leave_bucket(int stage, std::size_t device, std::size_t bucket, TaskId reduced);
  void leave_gradients(int stage, std::size_t device, const std::vector<TaskId>& reduced, double part, Whose whose);
  TaskId fetch_weights(int stage, std::size_t device, std::size_t step, double part, Whose whose, TaskId gather);
  void run_alone(int stage, std::size_t device, Whose whose, bool leaves = true);
  void leave_activations(int stage, std::size_t device);
  void leave_to_hosts();

  // task_graph_loading.cpp: what loads batches for the first stage
  void load_batches(const Loading& loading);
  TaskId add_copies(TaskKind kind, const ReplicaTasks& replica, const Leg& leg, Bytes bytes);

  const TaskGraphRequest& request_;
  const PlanCost& cost_;
  int micro_batches_;
  std::vector<std::int32_t> numbers_; // 0 … micro_batches_ - 1
  TaskGraph graph_;
  std::vector<int> index_of_;
  std::map<int, Bytes> common_buffers_; // by device: counted already, once for all of its stages
  std::vector<std::vector<ReplicaTasks>> replicas_;
  std::vector<std::unique_ptr<Turns>> turns_;
  ExchangePlan exchanges_;  // passes: of each replica kPasses
  bool recomputes_ = false; // whether any micro-batch is recomputed
  std::vector<int>
      backwards_left_; // [stage]: backwards left in the program being written; empty if no stage divides its last
  std::vector<std::int32_t> unit_of_;                              // [task]: the unit that it computes, or -1
  std::vector<std::vector<std::vector<std::int32_t>>> unit_steps_; // [stage][replica]: places in graph_.program
  std::map<std::pair<int, int>, TaskId> reduced_by_unit_;          // stage, rank -> the join of all reductions
  // What a device takes part in of one kind, with the place in its program that it belongs to. Where all collectives
  // of a kind are those of one group, its first device stands for the others.
  std::map<std::pair<int, TaskKind>, std::vector<std::pair<std::int32_t, Reduction>>> queues_;
  bool groups_cross_ = false; // experts, or second copies, have collectives of groups of their own
  static constexpr std::int32_t kLastPlace = std::numeric_limits<std::int32_t>::max(); // behind the program
  std::vector<std::pair<std::int32_t, TaskId>> insertions_;    // (place in graph_.program, task that stands before it)
  std::map<std::pair<int, TaskKind>, std::int32_t> copy_legs_; // of devices: their legs among graph_.legs
  std::vector<EdgeRun> edge_runs_;
  std::map<std::vector<std::int32_t>, std::int32_t> members_;     // the place of each list in TaskGraph::members
  std::map<std::vector<DeviceId>, std::int32_t> groups_of_teams_; // GraphTeam::group of these devices
  std::vector<std::pair<TaskId, TaskId>> fused_; // (task, the next one, fused with it), program by program
  std::vector<std::int32_t> ahead_;              // [task]: iterations that it runs before its own (-1: one after
                                                 // it); may end early
  std::vector<std::pair<TaskId, Tie>> ties_;     // by the task they start from
};

} // namespace stagecraft
