// Stages whose replicas share gradients or weights: their passes run unit by unit, in the order of the programs.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
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
  const bool weaves = request_.sharding.parts_weights() || request_.offload.activations > 0;
  if (kind == TaskKind::backward && again && weaves && program.size() >= 2 * units &&
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

// A unit's task among those of the pass that completes gradients and ends with the replica's last task so far.
TaskId TaskGraphBuilder::last_of_unit(const ReplicaTasks& replica, std::size_t unit) const {
  const std::vector<TaskId>& later = replica.later_units[static_cast<std::size_t>(completes())];
  const TaskId block = completes() == UnitPass::weight ? replica.weight : replica.backward;
  const TaskId place = replica.last - (later.empty() ? block : later.back());
  const std::size_t before = later.size() - unit; // of the pass: the last unit runs first
  return (before == 0 ? block : later[before - 1]) + place;
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
  const int in_fill = request_.schedule.micro_batches / request_.schedule.fills;
  std::vector<UnitStep> steps;
  for (const std::int32_t place : places) {
    const TaskId task = graph_.program[place];
    steps.push_back(
        {pass_of(graph_.works[graph_.work[task]].kind), unit_of_[task], graph_.micro_batch[task] / in_fill});
  }
  return steps;
}

// A device does one collective of a kind at a time, as frameworks issue them to one stream: what its experts' group
// exchanges comes behind what all replicas do for the same step, what gathers from a second copy behind the first
// gathers.
void TaskGraphBuilder::queue_up(int stage, TaskKind kind, const std::vector<std::size_t>& members, std::size_t step,
                                Reduction made) {
  const std::size_t count = groups_cross_ ? members.size() : 1;
  for (std::size_t i = 0; i < count; ++i) {
    queues_[{replicas_[stage][members[i]].device, kind}].push_back({unit_steps_[stage][members[i]][step], made});
  }
}

// What devices take part in, and each direction between a device and its host, goes one at a time, in the order of the
// device.
void TaskGraphBuilder::order_queues() {
  std::set<std::pair<TaskId, TaskId>> known; // groups have many devices in common
  for (auto& [key, queue] : queues_) {
    std::stable_sort(queue.begin(), queue.end(),
                     [](const auto& one, const auto& other) { return one.first < other.first; });
    for (std::size_t n = 1; n < queue.size(); ++n) {
      if (known.emplace(queue[n - 1].second.end, queue[n].second.begin).second) {
        edge_runs_.push_back({queue[n - 1].second.end, queue[n].second.begin, 1});
      }
    }
  }
}

// Writes the programs anew, with what was found to stand in them when they were written.
void TaskGraphBuilder::insert_into_programs() {
  if (insertions_.empty()) {
    return;
  }
  std::stable_sort(insertions_.begin(), insertions_.end(),
                   [](const auto& one, const auto& other) { return one.first < other.first; });
  std::vector<TaskId> program;
  program.reserve(graph_.program.size() + insertions_.size());
  std::vector<std::int32_t> begins;
  auto next = insertions_.begin();
  std::size_t device = 0;
  for (std::int32_t at = 0; at <= static_cast<std::int32_t>(graph_.program.size()); ++at) {
    while (device < graph_.program_begin.size() && graph_.program_begin[device] == at) {
      begins.push_back(static_cast<std::int32_t>(program.size()));
      ++device;
    }
    for (; next != insertions_.end() && next->first == at; ++next) {
      program.push_back(next->second);
    }
    if (at < static_cast<std::int32_t>(graph_.program.size())) {
      program.push_back(graph_.program[at]);
    }
  }
  graph_.program = std::move(program);
  graph_.program_begin = std::move(begins);
}

} // namespace stagecraft
