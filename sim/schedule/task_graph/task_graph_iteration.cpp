// The end of an iteration: gradients, optimizers, and the overlap with the next one.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/improves.hpp"
#include "sim/collective/collective.hpp"
#include "sim/plan/stage_cost/communicators.hpp"
#include "sim/schedule/task_graph/task_graph_builder.hpp"
#include "sim/schedule/task_graph/work_of_flow.hpp"

namespace stagecraft {

TaskId TaskGraphBuilder::add_join(TaskKind kind, int count) {
  graph_.joins += count;
  return add({.kind = kind}, count);
}

CollectiveKind TaskGraphBuilder::collective_of(TaskKind kind) {
  switch (kind) {
  case TaskKind::reduce_scatter:
    return CollectiveKind::reduce_scatter;
  case TaskKind::all_gather:
    return CollectiveKind::all_gather;
  case TaskKind::broadcast:
    return CollectiveKind::broadcast;
  case TaskKind::all_to_all:
    return CollectiveKind::all_to_all;
  default:
    return CollectiveKind::all_reduce;
  }
}

// Whether no stage steps before all have their gradients.
bool TaskGraphBuilder::steps_together() const {
  return request_.barrier && request_.schedule.flushes && !request_.schedule.steps_each_micro_batch;
}

// Gradients complete -> all-reduce over replicas -> (barrier) -> optimiser, perhaps that of the next iteration. Where
// replicas share the optimiser: reduce-scatter -> (barrier) -> optimiser -> all-gather -> forward of the next one.
// Where gradients are clipped, the norm of a replica's gradients, and a sum over all devices, come before the barrier.
void TaskGraphBuilder::finish_iteration() {
  const TaskId barrier = steps_together() ? add_join(TaskKind::optimizer, 1) : kNone;
  for (int s = 0; s < stages(); ++s) {
    const int degree = cost_.stages[s].tensor_parallel;
    const bool replicated = static_cast<int>(cost_.stages[s].size()) > degree;
    for (int rank = 0; rank < degree; ++rank) {
      const int steps = request_.schedule.steps_each_micro_batch ? count_of(replicas_[s][rank]) : 1;
      const TaskId reduced = replicated ? reduce_gradients(s, rank, steps) : kNone;
      for (std::size_t i = rank; i < replicas_[s].size(); i += degree) {
        const ReplicaTasks& replica = replicas_[s][i];
        if (barrier != kNone) {
          const TaskId complete = reduced != kNone ? reduced : replica.last;
          edge_runs_.push_back({complete, clips() ? replica.norm : barrier, 1});
          edge_runs_.push_back({barrier, replica.optimizer, 1});
        } else if (reduced != kNone) {
          edge_runs_.push_back({reduced, replica.optimizer, steps});
        }
        if (replica.host_step != kNone) {
          step_on_host(s, i, reduced != kNone ? reduced : replica.last, barrier);
        }
      }
      if (replicated && request_.sharding.on() && !request_.sharding.gathers_units()) {
        gather_parameters(s, rank);
      }
    }
  }
  if (clips()) {
    add_up_norms(barrier);
  }
}

// An all-reduce of one number over each norm group, after which all may step.
void TaskGraphBuilder::add_up_norms(TaskId barrier) {
  constexpr Bytes kOneNumber{4}; // fp32
  const std::vector<std::vector<DeviceId>> groups = norm_groups(cost_, request_.sharding.on());
  for (const std::vector<DeviceId>& devices : groups) {
    std::vector<TaskId> made;
    std::vector<char> is_member(graph_.devices.size(), 0);
    for (const DeviceId device : devices) {
      is_member[index_of_[device]] = 1;
    }
    if (!is_simulated(devices)) {
      continue;
    }
    std::vector<const ReplicaTasks*> members(graph_.devices.size(), nullptr); // [device]: one of its stages
    for (const std::vector<ReplicaTasks>& stage : replicas_) {
      for (const ReplicaTasks& replica : stage) {
        if (is_member[replica.device] != 0) {
          made.push_back(replica.norm);
          members[replica.device] = &replica;
        }
      }
    }
    if (devices.size() == 1) {
      for (const TaskId norm : made) {
        edge_runs_.push_back({norm, barrier, 1});
      }
      continue;
    }
    Reducers reducers{.kind = TaskKind::all_reduce};
    for (const DeviceId device : devices) {
      const ReplicaTasks* member = members[index_of_[device]];
      if (graph_.devices[member->device] == device) {
        reducers.replicas.push_back(member);
      }
    }
    reducers.alone = groups.size() == 1;
    reducers.count = reducers.alone ? 1 : graph_.stands_for(static_cast<std::size_t>(index_of_[devices.front()]));
    if (request_.all_reduce != kHopByHop.name) {
      reducers.ways = ways_of(CollectiveKind::all_reduce, devices, request_.router, request_.all_reduce);
    }
    const int stage = graph_.works[graph_.work[reducers.replicas.front()->norm]].stage;
    edge_runs_.push_back({add_reduction(stage, reducers, kOneNumber, made, 1).end, barrier, 1});
  }
}

// Whether a group of devices is simulated, and not another one in its place.
bool TaskGraphBuilder::is_simulated(const std::vector<DeviceId>& devices) const {
  return std::any_of(devices.begin(), devices.end(),
                     [&](DeviceId device) { return graph_.devices[index_of_[device]] == device; });
}

// The task that completes a replica's gradients of the iteration; or, with a step per micro-batch, the block of tasks
// that complete those of each micro-batch.
TaskId TaskGraphBuilder::complete(const ReplicaTasks& replica) const {
  if (!request_.schedule.steps_each_micro_batch) {
    return replica.last;
  }
  return replica.weight != kNone ? replica.weight : replica.backward;
}

TaskGraphBuilder::Reducers TaskGraphBuilder::reducers_of(int stage, int rank, TaskKind kind) const {
  std::vector<std::size_t> members;
  for (std::size_t i = rank; i < cost_.stages[stage].size(); i += cost_.stages[stage].tensor_parallel) {
    members.push_back(i);
  }
  return reducers_among(stage, {std::move(members)}, kind);
}

TaskGraphBuilder::Reducers TaskGraphBuilder::reducers_among(int stage, const FoldedGroup& group, TaskKind kind) const {
  Reducers reducers{.kind = kind, .count = group.count};
  std::vector<DeviceId> devices;
  for (const std::size_t member : group.members) {
    devices.push_back(cost_.stages[stage].device(member));
  }
  for (const std::size_t member : simulated_among(stage, group.members)) {
    reducers.replicas.push_back(&replicas_[stage][member]);
  }
  if (request_.all_reduce != kHopByHop.name) {
    const bool by_name = kind != TaskKind::all_to_all; // names are of algorithms that reduce
    reducers.ways = ways_of(collective_of(kind), devices, request_.router,
                            by_name ? request_.all_reduce : kAllReduces.front().name);
  }
  return reducers;
}

// Those of a rank that have the same experts; none where there is nothing of experts to reduce.
std::vector<FoldedGroup> TaskGraphBuilder::folded_expert_groups(int stage, int rank) const {
  const StageCost& cost = cost_.stages[stage];
  if (cost.expert_gradients.value == 0) {
    return {};
  }
  return fold_groups(expert_groups(cost, static_cast<std::size_t>(rank)), fold_of(stage),
                     static_cast<std::size_t>(cost.tensor_parallel));
}

// Those of a rank that have the same experts, where there are several.
std::vector<TaskGraphBuilder::Reducers> TaskGraphBuilder::reducers_of_experts(int stage, int rank,
                                                                              TaskKind kind) const {
  std::vector<Reducers> all;
  for (const FoldedGroup& group : folded_expert_groups(stage, rank)) {
    if (group.members.size() > 1) {
      all.push_back(reducers_among(stage, group, kind));
    }
  }
  return all;
}

// Reduces, or gathers, what all replicas have, then what those with the same experts have, each group beside the
// others.
TaskGraphBuilder::Reduction TaskGraphBuilder::reduce_dense_and_experts(int stage, const Reducers& dense,
                                                                       const std::vector<Reducers>& experts,
                                                                       const GradientBucket& bytes,
                                                                       const std::vector<TaskId>& made, int steps) {
  Reduction all = add_reduction(stage, dense, bytes.bytes, made, steps);
  if (experts.empty() || bytes.of_experts.value == 0) {
    return all;
  }
  const TaskId end = add_join(dense.kind, steps);
  for (const Reducers& reducers : experts) {
    const Reduction one = add_reduction(stage, reducers, bytes.of_experts, {all.end}, steps);
    edge_runs_.push_back({one.end, end, steps});
  }
  return {all.begin, end};
}

std::vector<FoldedSharing> TaskGraphBuilder::groups_that_share(int stage, int rank, Whose whose) const {
  const StageCost& cost = cost_.stages[stage];
  return fold_sharing(sharing_groups(cost, static_cast<std::size_t>(rank), whose == Whose::experts), fold_of(stage),
                      static_cast<std::size_t>(cost.tensor_parallel));
}

// Reduces what replicas hold alike, in each group to the members' parts, and adds up each part over the groups. Returns
// the join at the end.
TaskId TaskGraphBuilder::add_up_alike(int stage, const FoldedSharing& alike, Bytes bytes, TaskId made, int steps) {
  const TaskId end = add_join(TaskKind::reduce_scatter, steps);
  std::vector<TaskId> ends;
  for (const FoldedGroup& group : alike.groups) {
    ends.push_back(
        alike.parts == 1
            ? made
            : add_reduction(stage, reducers_among(stage, group, TaskKind::reduce_scatter), bytes, {made}, steps).end);
  }
  const auto parts = static_cast<double>(alike.parts);
  for (const FoldedGroup& place : alike.places) {
    const Reducers reducers = reducers_among(stage, place, TaskKind::all_reduce);
    edge_runs_.push_back({add_reduction(stage, reducers, bytes / parts, ends, steps).end, end, steps});
  }
  return end;
}

// The same of all that a rank's replicas hold: experts after everything else.
TaskGraphBuilder::Reduction TaskGraphBuilder::reduce_in_groups(int stage, int rank, const GradientBucket& bytes,
                                                               const std::vector<TaskId>& made, int steps) {
  const TaskId begin = add_join(TaskKind::reduce_scatter, steps);
  for (const TaskId task : made) {
    edge_runs_.push_back({task, begin, steps});
  }
  const TaskId dense =
      add_up_alike(stage, groups_that_share(stage, rank, Whose::dense).front(), bytes.bytes, begin, steps);
  if (bytes.of_experts.value == 0) {
    return {begin, dense};
  }
  const TaskId end = add_join(TaskKind::reduce_scatter, steps);
  for (const FoldedSharing& alike : groups_that_share(stage, rank, Whose::experts)) {
    edge_runs_.push_back({add_up_alike(stage, alike, bytes.of_experts, dense, steps), end, steps});
  }
  return {begin, end};
}

// Reduces gradients over the replicas' shards of one rank, `steps` times an iteration, all at once or bucket by bucket.
// Returns the block of the joins at the end.
TaskId TaskGraphBuilder::reduce_gradients(int stage, int rank, int steps) {
  const StageCost& cost = cost_.stages[stage];
  if (cost.shares_units()) {
    return reduced_by_unit(stage, rank);
  }
  const bool to_parts = request_.sharding.on() && !request_.sharding.broadcasts();
  const TaskKind kind = to_parts ? TaskKind::reduce_scatter : TaskKind::all_reduce;
  const Reducers reducers = reducers_of(stage, rank, kind);
  const std::vector<Reducers> experts = reducers_of_experts(stage, rank, kind);
  const auto reduce = [&](const GradientBucket& bytes, const std::vector<TaskId>& made, int times) {
    return to_parts && shares_in_groups(cost) ? reduce_in_groups(stage, rank, bytes, made, times)
                                              : reduce_dense_and_experts(stage, reducers, experts, bytes, made, times);
  };
  const std::size_t parts = reducers.replicas.front()->parts.size();
  if (parts == 0) {
    std::vector<TaskId> made;
    for (const ReplicaTasks* replica : reducers.replicas) {
      made.push_back(complete(*replica));
    }
    const GradientBucket bytes{.bytes = cost.gradients, .of_experts = cost.expert_gradients};
    const Reduction whole = reduce(bytes, made, steps);
    follow_itself(whole, steps);
    return whole.end;
  }
  Reduction all{kNone, kNone};
  for (std::size_t k = 0; k < parts; ++k) { // one after the other, as on one stream
    std::vector<TaskId> made;
    for (const ReplicaTasks* replica : reducers.replicas) {
      made.push_back(replica->parts[k]);
    }
    if (k > 0) {
      made.push_back(all.end);
    }
    const Reduction one = reduce(cost.buckets[k], made, 1);
    for (const ReplicaTasks* replica : reducers.replicas) {
      leave_bucket(stage, static_cast<std::size_t>(replica - replicas_[stage].data()), k, one.end);
    }
    all = {k > 0 ? all.begin : one.begin, one.end};
  }
  follow_itself(all, 1);
  return all.end;
}

TaskKind TaskGraphBuilder::gathering_after_step() const {
  return request_.sharding.broadcasts() ? TaskKind::broadcast : TaskKind::all_gather;
}

// Gathers what each replica's step made of its part of the parameters. The first forward of each replica in the next
// iteration waits for it.
void TaskGraphBuilder::gather_parameters(int stage, int rank) {
  if (shares_in_groups(cost_.stages[stage])) {
    gather_in_groups(stage, rank);
    return;
  }
  const StageCost& cost = cost_.stages[stage];
  Reducers reducers = reducers_of(stage, rank, gathering_after_step());
  reducers.one_by_one = collectives_after_step(cost, false);
  std::vector<Reducers> of_experts = reducers_of_experts(stage, rank, gathering_after_step());
  for (Reducers& group : of_experts) {
    group.one_by_one = collectives_after_step(cost, true);
  }
  std::vector<TaskId> made;
  for (const ReplicaTasks* replica : reducers.replicas) {
    made.push_back(replica->stepped());
  }
  const Reduction gathered = reduce_dense_and_experts(
      stage, reducers, of_experts,
      {.bytes = gathered_after_step(cost, false), .of_experts = gathered_after_step(cost, true)}, made, 1);
  for (const ReplicaTasks* replica : reducers.replicas) {
    ties_.emplace_back(gathered.end, Tie{replica->forward, 1, false});
  }
}

// The same where each group gathers for itself: all else, then experts.
void TaskGraphBuilder::gather_in_groups(int stage, int rank) {
  const StageCost& cost = cost_.stages[stage];
  std::vector<TaskId> ready(replicas_[stage].size(), kNone);
  for (auto device = static_cast<std::size_t>(rank); device < ready.size(); device += cost.tensor_parallel) {
    ready[device] = replicas_[stage][device].stepped();
  }
  for (const Whose whose : {Whose::dense, Whose::experts}) {
    const Bytes bytes = gathered_after_step(cost, whose == Whose::experts);
    if (bytes.value == 0) {
      continue;
    }
    for (const FoldedSharing& alike : groups_that_share(stage, rank, whose)) {
      for (const FoldedGroup& group : alike.groups) {
        if (alike.parts == 1) {
          continue;
        }
        const std::vector<std::size_t> members = simulated_among(stage, group.members);
        std::vector<TaskId> made;
        std::transform(members.begin(), members.end(), std::back_inserter(made),
                       [&](auto device) { return ready[device]; });
        Reducers reducers = reducers_among(stage, group, gathering_after_step());
        reducers.one_by_one = collectives_after_step(cost, whose == Whose::experts);
        const Reduction gathered = add_reduction(stage, reducers, bytes, made, 1);
        for (const std::size_t device : members) {
          ready[device] = gathered.end;
        }
      }
    }
  }
  for (auto device = static_cast<std::size_t>(rank); device < ready.size(); device += cost.tensor_parallel) {
    ties_.emplace_back(ready[device], Tie{replicas_[stage][device].forward, 1, false});
  }
}

// A late step leaves time for a reduction until the next one, which then waits for it, as on one stream.
void TaskGraphBuilder::follow_itself(const Reduction& reduction, int steps) {
  for (int i = 0; steps_late() && i < steps; ++i) {
    ties_.emplace_back(reduction.end + i, Tie{reduction.begin + i, 1, false});
  }
}

// Adds what reduces or gathers so many bytes once all of `made` have ended, between two joins. `kernels`: what its own
// stream does before and after.
TaskGraphBuilder::Reduction TaskGraphBuilder::add_reduction(int stage, const Reducers& reducers, Bytes bytes,
                                                            const std::vector<TaskId>& made, int steps,
                                                            Seconds kernels) {
  const TaskId begin = add_join(reducers.kind, steps);
  const Reduction reduction{begin, add_join(reducers.kind, steps)};
  for (const TaskId task : made) {
    edge_runs_.push_back({task, begin, steps});
  }
  reducers.ways.empty() ? add_hops(stage, reducers, bytes, reduction, steps)
                        : add_flows(stage, reducers, bytes, reduction, steps, kernels);
  return reduction;
}

// The flows of the fastest way, one after the other; those of collectives in a row as one.
void TaskGraphBuilder::add_flows(int stage, const Reducers& reducers, Bytes bytes, const Reduction& reduction,
                                 int steps, Seconds kernels) {
  std::vector<std::int32_t> devices;
  for (const ReplicaTasks* replica : reducers.replicas) {
    devices.push_back(replica->device);
  }
  const std::int32_t members = add_members(std::move(devices));
  TaskId before = reduction.begin;
  for (const CoupledFlow& flow : fastest_of(reducers.ways, bytes * reducers.one_by_one.front().part).flows) {
    const auto leg = static_cast<std::int32_t>(graph_.legs.size());
    Work work;
    double sent = 0;
    Seconds latency, seconds;
    for (const StepsAlike& alike : reducers.one_by_one) {
      work =
          work_of_flow(reducers.kind, reducers.replicas.front()->device, stage, leg, members, flow, bytes * alike.part);
      sent += work.bytes * alike.replicas;
      latency += work.latency * alike.replicas;
      seconds += work.seconds * alike.replicas;
    }
    work.bytes = sent;
    work.latency = latency;
    work.seconds = seconds;
    const Seconds own = std::exchange(kernels, Seconds{0}); // of the first flow
    work.latency += own;
    work.seconds += own;
    if (cost_.fold && reducers.alone) { // as a time, which no link can change
      graph_.folded.alone.emplace_back(static_cast<std::int32_t>(graph_.works.size()), flow.leg.links);
      work.latency = work.seconds;
      graph_.legs.push_back({{}, work.seconds, BytesPerSecond{kInfinity}});
    } else {
      graph_.legs.push_back(folded(flow.leg, reducers.count));
    }
    const TaskId next = add(work, steps);
    edge_runs_.push_back({before, next, steps});
    before = next;
  }
  edge_runs_.push_back({before, reduction.end, steps});
}

// Each sends to its neighbour, all at once: 2 (r-1)/r of the gradients for an all-reduce, half of that otherwise.
void TaskGraphBuilder::add_hops(int stage, const Reducers& reducers, Bytes bytes, const Reduction& reduction,
                                int steps) {
  const std::vector<const ReplicaTasks*>& ring = reducers.replicas;
  const int ranks = static_cast<int>(ring.size());
  Traffic traffic = traffic_of({collective_of(reducers.kind), {ranks, {}}, bytes});
  traffic.steps *= std::accumulate(reducers.one_by_one.begin(), reducers.one_by_one.end(), 0,
                                   [](int sum, const StepsAlike& alike) { return sum + alike.replicas; });
  for (int i = 0; i < ranks; ++i) {
    const int from = ring[i]->device, to = ring[(i + 1) % ranks]->device;
    const auto sent = add_transfer(reducers.kind, from, to, stage, stage, std::round(traffic.bytes.value),
                                   traffic.steps, steps, {}, {graph_.devices[from], graph_.devices[to]});
    edge_runs_.push_back({reduction.begin, sent.first, steps});
    edge_runs_.push_back({sent.second, reduction.end, steps});
  }
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
