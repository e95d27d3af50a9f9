// Stages whose replicas share gradients or weights: their passes run unit by unit, what a unit needs is gathered before
// it, and its gradients are reduced after it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <unordered_set>

#include "sim/schedule/task_graph/task_graph_builder.hpp"

namespace stagecraft {

namespace {

UnitPass pass_of(TaskKind kind) {
  switch (kind) {
  case TaskKind::backward:
    return UnitPass::backward;
  case TaskKind::weight:
    return UnitPass::weight;
  case TaskKind::recompute:
    return UnitPass::recompute;
  default:
    return UnitPass::forward;
  }
}

} // namespace

bool TaskGraphBuilder::has_units() const {
  return std::any_of(cost_.stages.begin(), cost_.stages.end(),
                     [](const StageCost& stage) { return !stage.units.empty(); });
}

// Divides a replica's passes into a task for each unit.
void TaskGraphBuilder::divide_by_units(int stage, ReplicaTasks& replica) {
  const StageCost& cost = cost_.stages[stage];
  if (cost.units.empty()) {
    return;
  }
  const auto device = static_cast<std::size_t>(&replica - replicas_[stage].data());
  const TensorGroup* group = cost.group_of(device);
  const UnitParts parts = group != nullptr ? parts_of(cost.units, group->passes->of_operators) : cost.unit_parts;
  const bool splits = request_.schedule.splits_backward;
  const int count = count_of(replica);
  const auto divide = [&](UnitPass pass, TaskId block, int tasks, const std::vector<double>& part) {
    const bool backward = pass == UnitPass::backward || pass == UnitPass::weight;
    divide_block(block, tasks, part, backward, replica.later_units[static_cast<std::size_t>(pass)]);
  };
  divide(UnitPass::forward, replica.forward, count, parts.forward);
  divide(UnitPass::backward, replica.backward, count, splits ? parts.backward_input : parts.backward);
  if (splits) {
    divide(UnitPass::weight, replica.weight, count, parts.backward_weight);
  }
  const auto again = std::count_if(replica.recomputed.begin(), replica.recomputed.end(), [](int n) { return n >= 0; });
  if (again > 0) {
    divide(UnitPass::recompute, replica.recompute, static_cast<int>(again), parts.recompute);
  }
}

// Makes a block for each unit, the first of them in place. A pass takes its memory with its first unit and gives it
// back with its last.
void TaskGraphBuilder::divide_block(TaskId block, int count, std::vector<double> parts, bool backward,
                                    std::vector<TaskId>& later) {
  const std::size_t units = parts.size();
  if (backward) { // the last unit runs first
    std::reverse(parts.begin(), parts.end());
  }
  std::map<std::int32_t, std::int32_t> first_part; // of a work: the work of its first part; the others follow
  const auto divide = [&](std::int32_t whole) {
    const auto [at, is_new] = first_part.try_emplace(whole, static_cast<std::int32_t>(graph_.works.size()));
    double begin = 0;
    for (std::size_t k = 0; is_new && k < units; ++k) {
      Work part = graph_.works[whole];
      part.seconds = part.seconds * parts[k];
      part.part_begin = begin;
      part.part_end = begin = k + 1 == units ? 1 : begin + parts[k];
      part.acquire = k == 0 ? part.acquire : Bytes{0};
      part.release = k + 1 == units ? part.release : Bytes{0};
      graph_.works.push_back(part);
    }
    return at->second;
  };
  std::vector<std::int32_t> first(count);
  std::transform(graph_.work.begin() + block, graph_.work.begin() + block + count, first.begin(), divide);
  unit_of_.resize(graph_.work.size(), -1);
  for (std::size_t k = 0; k < units; ++k) {
    const TaskId own = k == 0 ? block : static_cast<TaskId>(graph_.work.size());
    if (k > 0) {
      later.push_back(own);
      graph_.work.resize(own + count);
      graph_.micro_batch.resize(own + count);
      std::copy_n(graph_.micro_batch.begin() + block, count, graph_.micro_batch.begin() + own);
      unit_of_.resize(own + count);
    }
    for (int i = 0; i < count; ++i) {
      graph_.work[own + i] = first[i] + static_cast<std::int32_t>(k);
      unit_of_[own + i] = static_cast<std::int32_t>(backward ? units - 1 - k : k);
    }
  }
}

// Goes on with a pass, whose first unit's task was written last, until its last unit; returns that.
TaskId TaskGraphBuilder::write_units(TaskKind kind, ReplicaTasks& replica, std::int32_t micro_batch) {
  std::vector<TaskId>& program = graph_.program;
  const TaskId first = program.back();
  const std::array blocks = {replica.forward, replica.recompute, replica.backward, replica.weight}; // by UnitPass
  const auto pass = static_cast<std::size_t>(pass_of(kind));
  for (const TaskId later : replica.later_units[pass]) {
    const TaskId next = later + (first - blocks[pass]);
    fused_.emplace_back(program.back(), next);
    program.push_back(next);
  }
  const std::size_t units = replica.later_units[pass].size() + 1;
  const bool again = !replica.recomputed.empty() && replica.recomputed[micro_batch] >= 0;
  if (kind == TaskKind::backward && again && request_.sharding.parts_weights() && program.size() >= 2 * units &&
      program[program.size() - 2 * units] == task_of(replica, TaskKind::recompute, micro_batch)) {
    weave_recompute(units);
  }
  return program.back();
}

// A recompute directly before its backward: each unit runs forward again just before its own backward, as checkpoints
// of units do, so that its weights are gathered once for both.
void TaskGraphBuilder::weave_recompute(std::size_t units) {
  const auto begin = graph_.program.end() - static_cast<std::ptrdiff_t>(2 * units);
  const std::vector<TaskId> tasks(begin, graph_.program.end());
  const std::unordered_set<TaskId> both(tasks.begin(), tasks.end());
  TaskId before = kNone; // what the recompute was fused with
  while (!fused_.empty() && both.contains(fused_.back().second)) {
    before = both.contains(fused_.back().first) ? before : fused_.back().first;
    fused_.pop_back();
  }
  for (std::size_t k = 0; k < units; ++k) {
    for (const TaskId task : {tasks[units - 1 - k], tasks[units + k]}) {
      begin[static_cast<std::ptrdiff_t>(2 * k + (task == tasks[units + k] ? 1 : 0))] = task;
      if (before != kNone) {
        fused_.emplace_back(before, task);
      }
      before = task;
    }
  }
}

// Joins what reduces a stage's gradients by unit, for shards of one rank.
TaskId TaskGraphBuilder::reduced_by_unit(int stage, int rank) {
  const TaskId reduced = add_join(TaskKind::reduce_scatter, 1);
  reduced_by_unit_[{stage, rank}] = reduced;
  for (std::size_t i = rank; i < replicas_[stage].size(); i += cost_.stages[stage].tensor_parallel) {
    edge_runs_.push_back({replicas_[stage][i].last, reduced, 1});
  }
  return reduced;
}

// Lists the units that each replica runs, in the order of its device.
void TaskGraphBuilder::list_unit_steps() {
  unit_of_.resize(graph_.work.size(), -1);
  unit_steps_.resize(stages());
  std::vector<std::map<int, std::size_t>> replica_of(graph_.devices.size()); // [device]: of each stage
  for (int s = 0; s < stages(); ++s) {
    unit_steps_[s].resize(replicas_[s].size());
    for (std::size_t i = 0; i < replicas_[s].size(); ++i) {
      replica_of[replicas_[s][i].device][s] = i;
    }
  }
  for (std::size_t device = 0; device < graph_.devices.size(); ++device) {
    for (std::int32_t at = graph_.program_begin[device]; at < graph_.program_begin[device + 1]; ++at) {
      const TaskId task = graph_.program[at];
      if (unit_of_[task] >= 0) {
        const int stage = graph_.works[graph_.work[task]].stage;
        unit_steps_[stage][replica_of[device].at(stage)].push_back(at);
      }
    }
  }
}

// The steps at these places of programs.
std::vector<UnitStep> TaskGraphBuilder::unit_steps(const std::vector<std::int32_t>& places) const {
  std::vector<UnitStep> steps;
  for (const std::int32_t place : places) {
    const TaskId task = graph_.program[place];
    steps.push_back({pass_of(graph_.works[graph_.work[task]].kind), unit_of_[task]});
  }
  return steps;
}

namespace {

Bytes bytes_of(const ShardUnit& unit, TaskKind kind, bool of_experts) {
  if (kind == TaskKind::all_gather) {
    return of_experts ? unit.expert_weights : unit.weights;
  }
  return of_experts ? unit.expert_gradients : unit.gradients;
}

} // namespace

// Experts: not those steps whose unit has none.
void TaskGraphBuilder::leave_out_empty(int stage, TaskKind kind, Whose whose, const std::vector<std::int32_t>& steps,
                                       std::vector<char>& chosen) const {
  for (std::size_t n = 0; n < steps.size() && whose == Whose::experts; ++n) {
    const ShardUnit& unit = cost_.stages[stage].units[unit_of_[graph_.program[steps[n]]]];
    chosen[n] = bytes_of(unit, kind, true).value > 0 ? chosen[n] : 0;
  }
}

// The blocks of a group's collectives of one kind, [step]: from the join before it to the join after it.
std::vector<TaskGraphBuilder::Reduction> TaskGraphBuilder::add_unit_collectives(int stage, const Reducers& reducers,
                                                                                const std::vector<std::int32_t>& steps,
                                                                                const std::vector<char>& chosen,
                                                                                double part, Whose whose) {
  std::map<std::pair<std::int32_t, TaskKind>, std::vector<std::size_t>> alike; // unit, kind of the step -> steps
  for (std::size_t n = 0; n < steps.size(); ++n) {
    if (chosen[n] != 0) {
      const TaskId task = graph_.program[steps[n]];
      alike[{unit_of_[task], graph_.works[graph_.work[task]].kind}].push_back(n);
    }
  }
  std::vector<Reduction> made(steps.size(), {kNone, kNone});
  for (const auto& [key, numbers] : alike) {
    const ShardUnit& unit = cost_.stages[stage].units[key.first];
    const Bytes bytes = bytes_of(unit, reducers.kind, whose == Whose::experts) * part;
    const auto count = static_cast<int>(numbers.size());
    const auto begin = static_cast<TaskId>(graph_.work.size());
    const Reduction blocks = add_reduction(stage, reducers, bytes, {}, count);
    for (int i = 0; i < count; ++i) {
      made[numbers[i]] = {blocks.begin + i, blocks.end + i};
      for (TaskId task = begin + i; task < graph_.tasks(); task += count) { // of each join and flow
        graph_.micro_batch[task] = graph_.micro_batch[graph_.program[steps[numbers[i]]]];
      }
    }
  }
  return made;
}

// Gathers weights for the members of a group: a gather starts when each of them has so many steps left before it.
void TaskGraphBuilder::gather_units(int stage, const Reducers& reducers, const std::vector<std::size_t>& members,
                                    Whose whose) {
  const std::vector<std::int32_t>& steps = unit_steps_[stage][members.front()];
  std::vector<char> gathers = steps_that_gather(request_.sharding.reshard, unit_steps(steps));
  leave_out_empty(stage, reducers.kind, whose, steps, gathers);
  const std::vector<Reduction> made = add_unit_collectives(stage, reducers, steps, gathers, 1, whose);
  for (std::size_t n = 0; n < steps.size(); ++n) {
    if (gathers[n] == 0) {
      continue;
    }
    queues_[{reducers.replicas.front()->device, TaskKind::all_gather}].push_back({steps[n], made[n]});
    for (const std::size_t member : members) {
      const ReplicaTasks& replica = replicas_[stage][member];
      const std::int32_t at = unit_steps_[stage][member][n];
      const std::int32_t issue = at - 1 - request_.sharding.prefetch;
      if (issue >= graph_.program_begin[replica.device]) {
        edge_runs_.push_back({graph_.program[issue], made[n].begin, 1});
      } else {
        ties_.emplace_back(replica.optimizer, Tie{made[n].begin, 1, false});
      }
      edge_runs_.push_back({made[n].end, graph_.program[at], 1});
    }
  }
}

// Reduces gradients among the members of a group: at most two units' are complete and not yet reduced.
std::vector<TaskGraphBuilder::Reduction> TaskGraphBuilder::reduce_units(int stage, const Reducers& reducers,
                                                                        const std::vector<std::size_t>& members,
                                                                        Whose whose) {
  const std::vector<std::int32_t>& steps = unit_steps_[stage][members.front()];
  std::vector<char> reduces = steps_that_reduce(request_.sharding.reduce, unit_steps(steps), completes());
  leave_out_empty(stage, reducers.kind, whose, steps, reduces);
  std::vector<Reduction> made = add_unit_collectives(stage, reducers, steps, reduces, 1, whose);
  for (std::size_t n = 0; n < steps.size(); ++n) {
    if (reduces[n] == 0) {
      continue;
    }
    queues_[{reducers.replicas.front()->device, reducers.kind}].push_back({steps[n], made[n]});
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

// Where several groups hold the same (HSDP), each part is then added up over them.
void TaskGraphBuilder::add_up_groups(int stage, int rank, const std::vector<std::vector<Reduction>>& of_groups) {
  const auto degree = static_cast<std::size_t>(cost_.stages[stage].tensor_parallel);
  const auto sharing = static_cast<std::size_t>(cost_.stages[stage].sharing);
  std::vector<char> reduces; // the same steps for all groups
  for (const Reduction& reduction : of_groups.front()) {
    reduces.push_back(reduction.end != kNone ? 1 : 0);
  }
  for (std::size_t place = 0; place < sharing; ++place) {
    std::vector<std::size_t> members;
    for (std::size_t group = 0; group < of_groups.size(); ++group) {
      members.push_back((group * sharing + place) * degree + static_cast<std::size_t>(rank));
    }
    const Reducers reducers = reducers_among(stage, members, TaskKind::all_reduce);
    const std::vector<std::int32_t>& steps = unit_steps_[stage][members.front()];
    const std::vector<Reduction> made =
        add_unit_collectives(stage, reducers, steps, reduces, 1 / static_cast<double>(sharing), Whose::dense);
    for (std::size_t n = 0; n < steps.size(); ++n) {
      if (reduces[n] == 0) {
        continue;
      }
      queues_[{reducers.replicas.front()->device, TaskKind::all_reduce}].push_back({steps[n], made[n]});
      for (const std::vector<Reduction>& group : of_groups) {
        edge_runs_.push_back({group[n].end, made[n].begin, 1});
      }
      edge_runs_.push_back({made[n].end, reduced_by_unit_.at({stage, rank}), 1});
    }
  }
}

// What the members of a group gather and reduce, [step of the first]: its reductions.
std::vector<TaskGraphBuilder::Reduction>
TaskGraphBuilder::share_among(int stage, int rank, const std::vector<std::size_t>& members, Whose whose) {
  if (request_.sharding.gathers_units()) {
    gather_units(stage, reducers_among(stage, members, TaskKind::all_gather), simulated_among(stage, members), whose);
  }
  std::vector<Reduction> reduced = reduce_units(stage, reducers_among(stage, members, TaskKind::reduce_scatter),
                                                simulated_among(stage, members), whose);
  for (const Reduction& one : reduced) {
    if (one.end != kNone) {
      edge_runs_.push_back({one.end, reduced_by_unit_.at({stage, rank}), 1});
    }
  }
  return reduced;
}

// Replicas that have the same experts share these.
void TaskGraphBuilder::share_experts(int stage, int rank) {
  const StageCost& cost = cost_.stages[stage];
  const auto degree = static_cast<std::size_t>(cost.tensor_parallel);
  const auto apart = static_cast<std::size_t>(cost.axes.expert_replicas());
  for (std::size_t place = 0; place < apart && cost.expert_gradients.value > 0; ++place) {
    std::vector<std::size_t> members;
    for (std::size_t i = place * degree + rank; i < replicas_[stage].size(); i += apart * degree) {
      members.push_back(i);
    }
    if (members.size() > 1) {
      share_among(stage, rank, members, Whose::experts);
    }
  }
}

// Adds the collectives of all stages' units.
void TaskGraphBuilder::share_units() {
  list_unit_steps();
  for (int s = 0; s < stages(); ++s) {
    const StageCost& cost = cost_.stages[s];
    const auto degree = static_cast<std::size_t>(cost.tensor_parallel);
    const auto sharing = static_cast<std::size_t>(cost.sharing);
    const std::size_t groups = cost.units.empty() ? 0 : cost.size() / degree / sharing;
    for (int rank = 0; groups > 0 && rank < cost.tensor_parallel; ++rank) {
      std::vector<std::vector<Reduction>> of_groups;
      for (std::size_t group = 0; group < groups; ++group) {
        std::vector<std::size_t> members;
        for (std::size_t place = 0; place < sharing; ++place) {
          members.push_back((group * sharing + place) * degree + static_cast<std::size_t>(rank));
        }
        of_groups.push_back(share_among(s, rank, members, Whose::dense));
      }
      share_experts(s, rank);
      if (groups > 1) {
        add_up_groups(s, rank, of_groups);
      }
    }
  }
  for (auto& [key, queue] : queues_) { // a communicator does one at a time, in the order of its device
    std::sort(queue.begin(), queue.end(), [](const auto& one, const auto& other) { return one.first < other.first; });
    for (std::size_t n = 1; n < queue.size(); ++n) {
      edge_runs_.push_back({queue[n - 1].second.end, queue[n].second.begin, 1});
    }
  }
}

} // namespace stagecraft
