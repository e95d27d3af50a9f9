// What each device runs, in which order, and which actions form one task.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "sim/schedule/task_graph/task_graph_builder.hpp"

namespace stagecraft {

void TaskGraphBuilder::write_programs() {
  std::vector<std::vector<std::pair<int, ReplicaTasks*>>> stages_on(graph_.devices.size()); // ascending
  for (int s = 0; s < stages(); ++s) {
    for (ReplicaTasks& replica : replicas_[s]) {
      stages_on[replica.device].emplace_back(s, &replica);
    }
  }
  if (std::any_of(cost_.stages.begin(), cost_.stages.end(),
                  [](const StageCost& stage) { return stage.buckets.size() > 1; })) {
    backwards_left_.assign(stages(), 0);
  }
  std::vector<ReplicaTasks*> replica_of(stages(), nullptr);
  for (int device = 0; device < static_cast<int>(graph_.devices.size()); ++device) {
    for (const auto& [stage, replica] : stages_on[device]) {
      replica_of[stage] = replica;
    }
    graph_.program_begin.push_back(static_cast<std::int32_t>(graph_.program.size()));
    const std::vector<Action>& order = request_.schedule.orders[rank_of(device)];
    write_program(request_.schedule.pairs_by_layers ? backwards_first(order) : order, replica_of);
    for (const auto& [stage, replica] : stages_on[device]) {
      write_deferred(*replica);
    }
    for (const auto& [stage, replica] : stages_on[device]) { // of all its stages, before the first may step
      if (clips()) {
        write_norm(stage, *replica);
      }
    }
    for (const auto& [stage, replica] : stages_on[device]) {
      if (replica->optimizer == kNone) {
        write_optimizer(stage, *replica);
      }
      replica_of[stage] = nullptr;
    }
  }
  graph_.program_begin.push_back(static_cast<std::int32_t>(graph_.program.size()));
}

// An action's task, which is about to follow `before` in the program being written.
inline TaskId TaskGraphBuilder::task_after(TaskId before, const Action& action, ReplicaTasks& replica,
                                           std::int32_t micro_batch) {
  const TaskId task = task_of(replica, action.kind, micro_batch);
  if (action.fused) {
    fused_.emplace_back(before, task);
  }
  if (action.kind == TaskKind::backward || action.kind == TaskKind::weight) {
    replica.last = task;
  }
  return task;
}

void TaskGraphBuilder::write_program(const std::vector<Action>& order, const std::vector<ReplicaTasks*>& replica_of) {
  std::vector<TaskId>& program = graph_.program;
  const Schedule& schedule = request_.schedule;
  const TaskKind completes = schedule.splits_backward ? TaskKind::weight : TaskKind::backward;
  const bool flushes = schedule.flushes, steps = schedule.steps_each_micro_batch;
  const bool divides = !backwards_left_.empty();
  const bool late = steps_late();
  if (flushes && !divides && !steps && !has_units()) {
    auto at = program.insert(program.end(), order.size(), kNone);
    TaskId before = kNone;
    for (const Action& action : order) {
      before = task_after(before, action, *replica_of[action.stage], action.micro_batch);
      *at++ = before;
    }
    return;
  }
  if (divides) {
    for (const Action& action : order) {
      backwards_left_[action.stage] += action.kind == completes ? 1 : 0;
    }
  }
  for (const Action& action : order) {
    ReplicaTasks* replica = replica_of[action.stage];
    const std::int32_t m = flushes ? action.micro_batch : action.micro_batch % micro_batches_;
    if (late && action.micro_batch >= micro_batches_ && replica->optimizer == kNone) {
      write_optimizer(action.stage, *replica); // the first forward of the next iteration needs its weights
    }
    const TaskId task = task_after(program.empty() ? kNone : program.back(), action, *replica, m);
    program.push_back(task);
    if (!flushes) {
      set_ahead(task, action.micro_batch / micro_batches_);
    }
    if (!cost_.stages[action.stage].units.empty()) {
      const TaskId last = write_units(action.kind, *replica, m);
      replica->last = action.kind == TaskKind::backward || action.kind == TaskKind::weight ? last : replica->last;
    }
    if (divides && action.kind == completes && --backwards_left_[action.stage] == 0) {
      divide_last(*replica, cost_.stages[action.stage].buckets);
    }
    if (!defers() && action.kind == TaskKind::backward && completes == action.kind && replica->weight != kNone) {
      replica->last = replica->weight + replica->place(m);
      program.push_back(replica->last);
      set_ahead(replica->last, flushes ? 0 : action.micro_batch / micro_batches_);
    }
    if (steps && action.kind == completes) {
      program.push_back(replica->optimizer + replica->place(m));
    }
  }
}

// If a stage reduces its gradients bucket by bucket, its last backward is divided into one task per bucket. Activations
// are kept until the last of them.
void TaskGraphBuilder::divide_last(ReplicaTasks& replica, const std::vector<GradientBucket>& buckets) {
  if (buckets.size() < 2 || request_.schedule.steps_each_micro_batch) {
    return;
  }
  const int stage = graph_.works[graph_.work[replica.last]].stage;
  if (const std::vector<ShardUnit>& units = cost_.stages[stage].units; !units.empty()) { // it is divided already
    for (const GradientBucket& bucket : buckets) {
      const auto first =
          std::find_if(units.begin(), units.end(), [&](const ShardUnit& unit) { return bucket.first < unit.end; });
      replica.parts.push_back(last_of_unit(replica, static_cast<std::size_t>(first - units.begin())));
    }
    return;
  }
  Work work = graph_.works[graph_.work[replica.last]];
  const Seconds whole = work.seconds;
  const Bytes release = std::exchange(work.release, Bytes{0});
  const std::int32_t micro_batch = graph_.micro_batch[replica.last];
  const std::size_t device = &replica - replicas_[work.stage].data();
  const TensorGroup* group = cost_.stages[work.stage].group_of(device);
  const std::vector<double> of_group = group != nullptr ? group->parts_of(buckets) : std::vector<double>{};
  for (std::size_t k = 0; k < buckets.size(); ++k) {
    const double fraction = group != nullptr ? of_group[k] : buckets[k].part;
    work.seconds = whole * fraction;
    work.part_begin = k == 0 ? 0 : work.part_end;
    work.part_end = k + 1 == buckets.size() ? 1 : work.part_begin + fraction;
    work.release = k + 1 == buckets.size() ? release : Bytes{0};
    if (k == 0) {
      graph_.work[replica.last] = static_cast<std::int32_t>(graph_.works.size());
      graph_.works.push_back(work);
    } else {
      work.acquire = Bytes{0};
      const TaskId part = add(work, 1);
      graph_.micro_batch[part] = micro_batch;
      fused_.emplace_back(replica.last, part);
      graph_.program.push_back(part);
      replica.last = part;
    }
    replica.parts.push_back(replica.last);
  }
}

// Notes that a task runs this many iterations before the one that it belongs to.
void TaskGraphBuilder::set_ahead(TaskId task, int iterations) {
  if (iterations != 0) {
    ahead_.resize(graph_.work.size(), 0);
    ahead_[task] = iterations;
  }
}

// Adds a replica's optimiser step at this point of the program. A late one belongs to the iteration before.
void TaskGraphBuilder::write_optimizer(int stage, ReplicaTasks& replica) {
  const ReplicaCost& cost = cost_.stages[stage].replicas[&replica - replicas_[stage].data()];
  Work step{.kind = TaskKind::optimizer,
            .device = replica.device,
            .stage = stage,
            .to_stage = stage,
            .seconds = cost.optimizer,
            .at_rest = part_at_rest(cost, TaskKind::optimizer)};
  note_exchange(Pass::optimizer, replica, step);
  replica.optimizer = add(step, 1);
  set_ahead(replica.optimizer, steps_late() ? -1 : 0);
  graph_.program.push_back(replica.optimizer);
  if (cost.host != nullptr && cost.host->moved.value > 0) {
    write_host_step(stage, replica);
  }
}

// Adds the gradients of weights that wait until all backwards have run, of one micro-batch after another. The first
// bucket has them.
void TaskGraphBuilder::write_deferred(ReplicaTasks& replica) {
  if (replica.weight == kNone || !defers()) {
    return;
  }
  for (int place = 0; place < count_of(replica); ++place) {
    graph_.program.push_back(replica.weight + place);
  }
  replica.last = graph_.program.back();
  if (!replica.parts.empty()) {
    replica.parts.front() = replica.last;
  }
}

// Adds what reads a replica's gradients for their norm at this point of the program: the first part of its step.
void TaskGraphBuilder::write_norm(int stage, ReplicaTasks& replica) {
  const ReplicaCost& cost = cost_.stages[stage].replicas[&replica - replicas_[stage].data()];
  replica.norm = add(
      {.kind = TaskKind::optimizer, .device = replica.device, .stage = stage, .to_stage = stage, .seconds = cost.norm},
      1);
  graph_.program.push_back(replica.norm);
}

// Fused tasks act as one: the first waits for what any of them needs, and what any of them makes leaves after the last.
// A forward and a backward together take the part of their time that the request says.
void TaskGraphBuilder::join_fused() {
  std::vector<TaskId> head(graph_.work.size());
  std::iota(head.begin(), head.end(), 0);
  std::vector<TaskId> tail = head;
  for (const auto& [before, task] : fused_) { // in program order
    head[task] = head[before];
  }
  for (auto pair = fused_.rbegin(); pair != fused_.rend(); ++pair) {
    tail[pair->first] = tail[pair->second];
  }
  shorten_fused(head);
  std::vector<EdgeRun> runs;
  runs.reserve(edge_runs_.size());
  for (const EdgeRun& run : edge_runs_) {
    for (int i = 0; i < run.count; ++i) {
      runs.push_back({tail[run.from + i], head[run.to + i], 1});
    }
  }
  edge_runs_ = std::move(runs);
}

// The first task of a kind in a group, or kNone.
TaskId TaskGraphBuilder::first_of(const std::vector<TaskId>& group, TaskKind kind) const {
  const auto found = std::find_if(group.begin(), group.end(),
                                  [&](TaskId task) { return graph_.works[graph_.work[task]].kind == kind; });
  return found != group.end() ? *found : kNone;
}

namespace {

// A work whose fused pair takes a part of their time: what its group exchanges is hidden as far as that goes, and is no
// task of its own. What it computes draws as much energy as before, so its device rests less.
Work shorter_by(double part, Work work) {
  const double drawing = (1 - work.at_rest) * (1 - work.exchanging);
  const double saved = std::min(1 - part, work.exchanging);
  const double left = work.exchanging > 0 ? (work.exchanging - saved) / work.exchanging : 0;
  work.exchanging = work.exchanging * left / part;
  work.exchanging_latency = work.exchanging_latency * left / part;
  work.exchanging_hidden = (work.exchanging_hidden + saved) / part;
  work.handing_over = std::min(1.0, work.handing_over / part);
  work.at_rest = std::max(0.0, 1 - drawing / ((1 - work.exchanging) * part));
  work.seconds = work.seconds * part;
  work.pass = work.steps = -1;
  return work;
}

} // namespace

void TaskGraphBuilder::shorten_fused(const std::vector<TaskId>& head) {
  if (!request_.fused) {
    return;
  }
  std::map<TaskId, std::vector<TaskId>> groups;
  for (const auto& [before, task] : fused_) {
    std::vector<TaskId>& group = groups[head[task]];
    if (group.empty()) {
      group.push_back(before);
    }
    group.push_back(task);
  }
  std::map<std::pair<std::int32_t, double>, std::int32_t> shorter; // work, its part of the time -> the same, shorter
  for (const auto& [first, group] : groups) {
    const TaskId forward = first_of(group, TaskKind::forward);
    const TaskId backward = first_of(group, TaskKind::backward);
    if (forward == kNone || backward == kNone) {
      continue;
    }
    Seconds apart;
    for (const TaskId task : group) {
      apart += graph_.works[graph_.work[task]].seconds;
    }
    const Work& work = graph_.works[graph_.work[forward]];
    const double part =
        request_.fused({.forward_stage = work.stage,
                        .backward_stage = graph_.works[graph_.work[backward]].stage,
                        .with_weight = !request_.schedule.splits_backward || first_of(group, TaskKind::weight) != kNone,
                        .device = graph_.devices[work.device],
                        .apart = apart});
    if (part == 1) {
      continue;
    }
    for (const TaskId task : group) {
      const auto [slot, fresh] =
          shorter.try_emplace({graph_.work[task], part}, static_cast<std::int32_t>(graph_.works.size()));
      if (fresh) {
        graph_.works.push_back(shorter_by(part, graph_.works[graph_.work[task]]));
      }
      graph_.work[task] = slot->second;
    }
  }
}

} // namespace stagecraft
