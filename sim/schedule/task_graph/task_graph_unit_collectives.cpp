// What a unit needs is gathered before it, and its gradients are reduced after it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <map>

#include "sim/schedule/task_graph/task_graph_builder.hpp"

namespace stagecraft {

// Joins what reduces a stage's gradients by unit, for shards of one rank.
TaskId TaskGraphBuilder::reduced_by_unit(int stage, int rank) {
  const TaskId reduced = add_join(TaskKind::reduce_scatter, 1);
  reduced_by_unit_[{stage, rank}] = reduced;
  for (std::size_t i = rank; i < replicas_[stage].size(); i += cost_.stages[stage].tensor_parallel) {
    edge_runs_.push_back({replicas_[stage][i].last, reduced, 1});
  }
  return reduced;
}

namespace {

Bytes bytes_of(const ShardUnit& unit, TaskKind kind, bool of_experts, bool late) {
  if (kind == TaskKind::all_gather) {
    return late ? unit.late_weights : of_experts ? unit.expert_weights - unit.late_weights : unit.weights;
  }
  return of_experts ? unit.expert_gradients : unit.gradients;
}

// The part of these bytes that is sent.
double sent_part(const ShardUnit& unit, TaskKind kind, bool of_experts) {
  return kind == TaskKind::all_gather ? unit.gathered.of(of_experts) : kind == TaskKind::all_to_all ? unit.reduced : 1;
}

} // namespace

// Not those steps whose unit has nothing to send.
void TaskGraphBuilder::leave_out_empty(int stage, TaskKind kind, Whose whose, const std::vector<std::int32_t>& steps,
                                       std::vector<char>& chosen) const {
  for (std::size_t n = 0; n < steps.size(); ++n) {
    const ShardUnit& unit = cost_.stages[stage].units[unit_of_[graph_.program[steps[n]]]];
    const bool late = whose == Whose::late_experts;
    chosen[n] = bytes_of(unit, kind, whose != Whose::dense, late).value > 0 ? chosen[n] : 0;
  }
}

// The blocks of a group's collectives of one kind, [step]: from the join before it to the join after it.
std::vector<TaskGraphBuilder::Reduction>
TaskGraphBuilder::add_unit_collectives(int stage, const Reducers& reducers, const std::vector<std::int32_t>& steps,
                                       const std::vector<char>& chosen, double part, Whose whose, KernelTime kernels) {
  std::map<std::pair<std::int32_t, TaskKind>, std::vector<std::size_t>> alike; // unit, kind of the step -> steps
  for (std::size_t n = 0; n < steps.size(); ++n) {
    if (chosen[n] != 0) {
      const TaskId task = graph_.program[steps[n]];
      alike[{unit_of_[task], graph_.works[graph_.work[task]].kind}].push_back(n);
    }
  }
  const StageCost& cost = cost_.stages[stage];
  std::vector<Reduction> made(steps.size(), {kNone, kNone});
  for (const auto& [key, numbers] : alike) {
    const ShardUnit& unit = cost.units[key.first];
    const bool of_experts = whose != Whose::dense, late = whose == Whose::late_experts;
    const Bytes bytes =
        bytes_of(unit, reducers.kind, of_experts, late) * (sent_part(unit, reducers.kind, of_experts) * part);
    const Seconds own = kernels != nullptr && !cost.kernels.empty() ? kernels(cost.kernels[key.first]) : Seconds{0};
    const auto count = static_cast<int>(numbers.size());
    const auto begin = static_cast<TaskId>(graph_.work.size());
    const Reduction blocks = add_reduction(stage, reducers, bytes, {}, count, own);
    for (int i = 0; i < count; ++i) {
      made[numbers[i]] = {blocks.begin + i, blocks.end + i};
      for (TaskId task = begin + i; task < graph_.tasks(); task += count) { // of each join and flow
        graph_.micro_batch[task] = graph_.micro_batch[graph_.program[steps[numbers[i]]]];
      }
    }
  }
  return made;
}

// Gathers weights for a group: a gather starts when each of its members has so many steps left before it. `again`: from
// the second copy.
void TaskGraphBuilder::gather_units(int stage, const FoldedGroup& all, Whose whose, const std::vector<char>& gathers,
                                    bool again) {
  const Reducers reducers = reducers_among(stage, all, TaskKind::all_gather);
  const std::vector<std::size_t> members = simulated_among(stage, all.members);
  const std::vector<std::int32_t>& steps = unit_steps_[stage][members.front()];
  const KernelTime kernels = again ? KernelTime{[](const UnitKernels& of) { return of.before_second_gather; }}
                                   : KernelTime{[](const UnitKernels& of) { return of.before_gather; }};
  const std::vector<Reduction> made = add_unit_collectives(stage, reducers, steps, gathers, 1, whose, kernels);
  const double part = 1 / static_cast<double>(all.members.size());
  for (std::size_t n = 0; n < steps.size(); ++n) {
    if (gathers[n] == 0) {
      continue;
    }
    queue_up(stage, TaskKind::all_gather, members, n, made[n]);
    for (const std::size_t member : members) {
      const ReplicaTasks& replica = replicas_[stage][member];
      const std::int32_t at = unit_steps_[stage][member][n];
      const bool backward = graph_.works[graph_.work[graph_.program[at]]].kind != TaskKind::forward;
      const std::int32_t issue = at - 1 - (whose == Whose::late_experts ? 0 : request_.sharding.ahead(backward));
      const TaskId begin = again ? made[n].begin : fetch_weights(stage, member, n, part, whose, made[n].begin);
      if (issue >= graph_.program_begin[replica.device]) {
        edge_runs_.push_back({graph_.program[issue], begin, 1});
      } else {
        ties_.emplace_back(replica.stepped(), Tie{begin, 1, false});
      }
      use_gathered(stage, replica, at, made[n].end);
    }
  }
}

// A step that needs gathered weights: after them, and after what makes them into numbers to compute with.
void TaskGraphBuilder::use_gathered(int stage, const ReplicaTasks& replica, std::int32_t at, TaskId gathered) {
  const TaskId step = graph_.program[at];
  const std::vector<UnitKernels>& kernels = cost_.stages[stage].kernels;
  const Seconds seconds = kernels.empty() ? Seconds{0} : kernels[unit_of_[step]].after_gather;
  if (seconds.value == 0) {
    edge_runs_.push_back({gathered, step, 1});
    return;
  }
  const TaskId own = add(
      {.kind = TaskKind::dequantize, .device = replica.device, .stage = stage, .to_stage = stage, .seconds = seconds},
      1);
  graph_.micro_batch[own] = graph_.micro_batch[step];
  insertions_.emplace_back(at, own);
  edge_runs_.push_back({gathered, own, 1});
}

// All that a group gathers: for forwards from all parts; for what follows, where each few replicas have a second copy,
// among these.
void TaskGraphBuilder::gather_for(int stage, const FoldedGroup& all, Whose whose) {
  const std::vector<std::int32_t>& steps = unit_steps_[stage][simulated_among(stage, all.members).front()];
  const std::vector<UnitStep> what = unit_steps(steps);
  const std::vector<char> all_steps = steps_that_gather(request_.sharding.reshard, what);
  std::vector<char> gathers = all_steps;
  leave_out_empty(stage, TaskKind::all_gather, whose, steps, gathers);
  const int secondary = request_.sharding.secondary;
  if (secondary == 0) {
    gather_units(stage, all, whose, gathers, false);
    if (whose == Whose::experts) {
      gathers = all_steps;
      leave_out_empty(stage, TaskKind::all_gather, Whose::late_experts, steps, gathers);
      gather_units(stage, all, Whose::late_experts, gathers, false);
    }
    return;
  }
  std::vector<char> first = gathers, again = gathers;
  for (std::size_t n = 0; n < steps.size(); ++n) {
    (what[n].pass == UnitPass::forward ? again : first)[n] = 0;
  }
  gather_units(stage, all, whose, first, false);
  for (const FoldedGroup& copy : folded_in(stage, second_copies(all.members, secondary), all)) {
    gather_units(stage, copy, whose, again, true);
  }
}

// Of parts of a group, of which so many are alike, those that are simulated.
std::vector<FoldedGroup> TaskGraphBuilder::folded_in(int stage, std::vector<std::vector<std::size_t>> parts,
                                                     const FoldedGroup& of) const {
  std::vector<FoldedGroup> folded =
      fold_groups(std::move(parts), fold_of(stage), static_cast<std::size_t>(cost_.stages[stage].tensor_parallel));
  for (FoldedGroup& part : folded) {
    part.count *= of.count;
  }
  return folded;
}

// Two all-to-alls in place of a reduction: inside nodes, then between devices of nodes that have the same place there
// (Wang et al. 2023, 3.3). A group inside one node, or of one device in each, has one of the two.
std::vector<TaskGraphBuilder::Reduction> TaskGraphBuilder::reduce_in_two_hops(int stage, const FoldedGroup& all,
                                                                              const std::vector<std::int32_t>& steps,
                                                                              const std::vector<char>& reduces,
                                                                              Whose whose) {
  HopGroups hops = hop_groups(request_.router.platform(), cost_.stages[stage], all.members);
  const std::size_t places = hops.between.size(), nodes = hops.inside.size();
  const bool two = places > 1 && nodes > 1;
  std::vector<Reduction> made(steps.size(), {kNone, kNone});
  std::vector<TaskId> met(steps.size(), kNone); // between the hops
  for (std::size_t n = 0; n < steps.size(); ++n) {
    if (reduces[n] != 0) {
      made[n] = {add_join(TaskKind::all_to_all, 1), add_join(TaskKind::all_to_all, 1)};
      met[n] = two ? add_join(TaskKind::all_to_all, 1) : kNone;
      for (const TaskId join : {made[n].begin, made[n].end, two ? met[n] : made[n].end}) {
        graph_.micro_batch[join] = graph_.micro_batch[graph_.program[steps[n]]];
      }
    }
  }
  const auto add_hop = [&](const FoldedGroup& group, double part, KernelTime kernels, bool first) {
    const Reducers reducers = reducers_among(stage, group, TaskKind::all_to_all);
    const std::vector<Reduction> hop = add_unit_collectives(stage, reducers, steps, reduces, part, whose, kernels);
    for (std::size_t n = 0; n < steps.size(); ++n) {
      if (reduces[n] != 0) {
        edge_runs_.push_back({first ? made[n].begin : met[n], hop[n].begin, 1});
        edge_runs_.push_back({hop[n].end, first && two ? met[n] : made[n].end, 1});
      }
    }
  };
  const KernelTime outer = [](const UnitKernels& of) { return of.between + of.after_reduce; };
  const KernelTime only = [](const UnitKernels& of) { return of.before_reduce + of.between + of.after_reduce; };
  const KernelTime inner = [](const UnitKernels& of) { return of.before_reduce; };
  if (places > 1) {
    for (const FoldedGroup& group : folded_in(stage, std::move(hops.inside), all)) {
      add_hop(group, 1, two ? inner : only, true);
    }
  }
  if (nodes > 1) {
    for (const FoldedGroup& group : folded_in(stage, std::move(hops.between), all)) {
      add_hop(group, 1 / static_cast<double>(places), two ? outer : only, !two);
    }
  }
  return made;
}

// Reduces gradients among the members of a group: at most two units' are complete and not yet reduced.
std::vector<TaskGraphBuilder::Reduction> TaskGraphBuilder::reduce_units(int stage, const FoldedGroup& all, Whose whose,
                                                                        TaskKind kind) {
  const Reducers reducers = reducers_among(stage, all, kind);
  const std::vector<std::size_t> members = simulated_among(stage, all.members);
  const std::vector<std::int32_t>& steps = unit_steps_[stage][members.front()];
  std::vector<char> reduces = steps_that_reduce(request_.sharding.reduce, unit_steps(steps), completes());
  leave_out_empty(stage, reducers.kind, whose, steps, reduces);
  std::vector<Reduction> made = request_.sharding.quantized_gradients
                                    ? reduce_in_two_hops(stage, all, steps, reduces, whose)
                                    : add_unit_collectives(stage, reducers, steps, reduces, 1, whose);
  for (std::size_t n = 0; n < steps.size(); ++n) {
    if (reduces[n] == 0) {
      continue;
    }
    queue_up(stage, reducers.kind, members, n, made[n]);
    for (const std::size_t member : members) {
      const std::int32_t at = unit_steps_[stage][member][n];
      edge_runs_.push_back({graph_.program[at], made[n].begin, 1});
      const std::int32_t next = at + static_cast<std::int32_t>(kUnitsToReduce);
      if (next < graph_.program_begin[replicas_[stage][member].device + 1]) {
        edge_runs_.push_back({made[n].end, graph_.program[next], 1});
      }
    }
  }
  return made;
}

namespace {

// The tasks after which reductions have ended; -1 where there is none.
template <class Reductions> std::vector<TaskId> ends_of(const Reductions& reductions) {
  std::vector<TaskId> ends;
  std::transform(reductions.begin(), reductions.end(), std::back_inserter(ends),
                 [](const auto& reduction) { return reduction.end; });
  return ends;
}

} // namespace

// Where several groups hold the same (HSDP), each part is then added up over them.
void TaskGraphBuilder::add_up_groups(int stage, int rank, const FoldedSharing& alike,
                                     const std::vector<std::vector<Reduction>>& of_groups, Whose whose) {
  std::vector<char> reduces; // the same steps for all groups
  for (const Reduction& reduction : of_groups.front()) {
    reduces.push_back(reduction.end != kNone ? 1 : 0);
  }
  const double part = 1 / static_cast<double>(alike.parts);
  for (const FoldedGroup& place : alike.places) {
    const std::vector<std::size_t> members = simulated_among(stage, place.members);
    const Reducers reducers = reducers_among(stage, place, TaskKind::all_reduce);
    const std::vector<std::int32_t>& steps = unit_steps_[stage][members.front()];
    const std::vector<Reduction> made = add_unit_collectives(stage, reducers, steps, reduces, part, whose);
    for (std::size_t n = 0; n < steps.size(); ++n) {
      if (reduces[n] == 0) {
        continue;
      }
      queue_up(stage, TaskKind::all_reduce, members, n, made[n]);
      for (const std::vector<Reduction>& group : of_groups) {
        edge_runs_.push_back({group[n].end, made[n].begin, 1});
      }
      edge_runs_.push_back({made[n].end, reduced_by_unit_.at({stage, rank}), 1});
    }
    for (const std::size_t member : members) {
      leave_gradients(stage, member, ends_of(made), part, whose);
    }
  }
}

// Several groups of replicas that hold the same each share it; or each replica holds all of it, where a group has one
// (experts of which it has but one copy).
void TaskGraphBuilder::share_in_groups(int stage, int rank, const FoldedSharing& alike, Whose whose) {
  if (alike.parts > 1) {
    std::vector<std::vector<Reduction>> of_groups;
    for (const FoldedGroup& group : alike.groups) {
      of_groups.push_back(share_among(stage, rank, group, whose, false));
    }
    add_up_groups(stage, rank, alike, of_groups, whose);
    return;
  }
  const FoldedGroup& all = alike.places.front();
  const std::vector<std::size_t> members = simulated_among(stage, all.members);
  for (const std::size_t member : members) {
    run_alone(stage, member, whose, false);
  }
  const std::vector<Reduction> made = reduce_units(stage, all, whose, TaskKind::all_reduce);
  for (const Reduction& one : made) {
    if (one.end != kNone) {
      edge_runs_.push_back({one.end, reduced_by_unit_.at({stage, rank}), 1});
    }
  }
  for (const std::size_t member : members) {
    leave_gradients(stage, member, ends_of(made), 1, whose);
  }
}

// What the members of a group gather and reduce, [step of the first]: its reductions. `leaves`: reduced gradients may
// leave for the hosts.
std::vector<TaskGraphBuilder::Reduction> TaskGraphBuilder::share_among(int stage, int rank, const FoldedGroup& group,
                                                                       Whose whose, bool leaves) {
  if (request_.sharding.gathers_units()) {
    gather_for(stage, group, whose);
  }
  std::vector<Reduction> reduced = reduce_units(stage, group, whose, TaskKind::reduce_scatter);
  for (const Reduction& one : reduced) {
    if (one.end != kNone) {
      edge_runs_.push_back({one.end, reduced_by_unit_.at({stage, rank}), 1});
    }
  }
  for (const std::size_t member : simulated_among(stage, group.members)) {
    if (leaves) {
      leave_gradients(stage, member, ends_of(reduced), 1 / static_cast<double>(group.members.size()), whose);
    }
  }
  return reduced;
}

// Replicas that have the same experts share these.
void TaskGraphBuilder::share_experts(int stage, int rank) {
  for (const FoldedGroup& group : folded_expert_groups(stage, rank)) {
    if (group.members.size() > 1) {
      share_among(stage, rank, group, Whose::experts, true);
    } else {
      run_alone(stage, simulated(stage, group.members.front()), Whose::experts);
    }
  }
}

// Adds the collectives of all stages' units.
void TaskGraphBuilder::share_units() {
  list_unit_steps();
  groups_cross_ = request_.sharding.secondary > 0 ||
                  std::any_of(cost_.stages.begin(), cost_.stages.end(),
                              [](const StageCost& cost) { return cost.expert_gradients.value > 0; });
  for (int s = 0; s < stages(); ++s) {
    if (cost_.stages[s].shares_units()) {
      share_stage(s);
    }
  }
}

void TaskGraphBuilder::share_stage(int stage) {
  const StageCost& cost = cost_.stages[stage];
  for (int rank = 0; rank < cost.tensor_parallel; ++rank) {
    if (!shares_in_groups(cost)) {
      share_among(stage, rank, groups_that_share(stage, rank, Whose::dense).front().groups.front(), Whose::dense, true);
      share_experts(stage, rank);
      continue;
    }
    share_in_groups(stage, rank, groups_that_share(stage, rank, Whose::dense).front(), Whose::dense);
    if (cost.expert_gradients.value > 0) {
      for (const FoldedSharing& alike : groups_that_share(stage, rank, Whose::experts)) {
        share_in_groups(stage, rank, alike, Whose::experts);
      }
    }
  }
}

} // namespace stagecraft
