// The works of each stage's replicas: forwards, backwards, recompute.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/schedule/task_graph/task_graph_builder.hpp"

namespace stagecraft {

void TaskGraphBuilder::make_replicas() {
  replicas_.resize(stages());
  for (int s = 0; s < stages(); ++s) {
    for (const ReplicaCost& cost : cost_.stages[s].replicas) {
      replicas_[s].push_back({.device = index_of_[cost.device]});
    }
  }
  for (int s = 0; s < stages(); ++s) {
    list_teams(s);
    for (std::size_t i = 0; i < replicas_[s].size(); ++i) {
      read_orders(s, replicas_[s][i]);
      fill_replica(s, cost_.stages[s].replicas[i], replicas_[s][i]);
      divide_by_units(s, replicas_[s][i]);
    }
  }
}

// Reads from the order of the replica's rank which micro-batches of the stage it runs, and which of them it recomputes.
void TaskGraphBuilder::read_orders(int stage, ReplicaTasks& replica) {
  const bool in_turn = cost_.stages[stage].turns > 1;
  if (!in_turn && !recomputes_) {
    return;
  }
  std::vector<char> here(micro_batches_, 0);
  int again = 0;
  for (const Action& action : request_.schedule.orders[rank_of(replica.device)]) {
    const std::int32_t m = action.micro_batch % micro_batches_;
    if (action.stage == stage && action.kind == TaskKind::forward) {
      here[m] = 1;
    } else if (action.stage == stage && action.kind == TaskKind::recompute) {
      replica.recomputed.resize(micro_batches_, -1);
      replica.recomputed[m] = again++;
    }
  }
  if (in_turn) {
    turns_.push_back(std::make_unique<Turns>());
    Turns& turns = *turns_.back();
    turns.place.assign(micro_batches_, -1);
    for (std::int32_t m = 0; m < micro_batches_; ++m) {
      if (here[m] != 0) {
        turns.place[m] = static_cast<std::int32_t>(turns.micro_batches.size());
        turns.micro_batches.push_back(m);
      }
    }
    replica.turns = &turns;
  }
}

int TaskGraphBuilder::count_of(const ReplicaTasks& replica) const {
  return replica.turns != nullptr ? static_cast<int>(replica.turns->micro_batches.size()) : micro_batches_;
}

// Adds a task for each of the micro-batches that the replica runs.
TaskId TaskGraphBuilder::add(const Work& work, const ReplicaTasks& replica) {
  const TaskId block = add(work, count_of(replica));
  if (replica.turns != nullptr) {
    std::copy(replica.turns->micro_batches.begin(), replica.turns->micro_batches.end(),
              graph_.micro_batch.begin() + block);
  }
  return block;
}

TaskGraphBuilder::BackwardMemory TaskGraphBuilder::backward_memory(const StageMemory& memory, Bytes all) const {
  const Bytes rest = request_.schedule.splits_backward ? memory.for_weights.value_or(all) : memory.for_deferred;
  return {std::max(rest - all, Bytes{0}), std::max(all - rest, Bytes{0}), rest};
}

// The first leg to the next rank of a device's innermost team; -1 for a device alone.
std::int32_t TaskGraphBuilder::add_group_leg(int stage, const ReplicaCost& cost) {
  const StageCost& of_stage = cost_.stages[stage];
  const auto at = static_cast<std::size_t>(&cost - of_stage.replicas.data());
  if (of_stage.teams.all.empty() || of_stage.teams.next[at] < 0) {
    return -1;
  }
  const Route* route = request_.router.find(cost.device, of_stage.teams.next[at]);
  if (route == nullptr || route->legs.empty()) {
    return -1;
  }
  graph_.group_legs.push_back(route->legs.front());
  return static_cast<std::int32_t>(graph_.group_legs.size()) - 1;
}

// Lists the teams of a stage's devices.
void TaskGraphBuilder::list_teams(int stage) {
  const Teams& teams = cost_.stages[stage].teams;
  const auto first = static_cast<std::int32_t>(exchanges_.teams.size());
  for (const Team& team : teams.all) {
    std::vector<std::int32_t> devices;
    for (const std::size_t place : team.places) {
      devices.push_back(replicas_[stage][place].device);
    }
    const auto [group, is_new] =
        groups_of_teams_.try_emplace(team.devices, static_cast<std::int32_t>(groups_of_teams_.size()));
    exchanges_.teams.push_back({&team, devices.front(), add_members(devices), group->second});
  }
  for (std::size_t place = 0; place < teams.of.size() && !teams.all.empty(); ++place) {
    auto& of_device = exchanges_.teams_of[{stage, replicas_[stage][place].device}];
    std::transform(teams.of[place].begin(), teams.of[place].end(), of_device.begin(),
                   [&](std::int32_t team) { return team < 0 ? team : first + team; });
  }
}

// Lists the passes of a device's replica, once for all of its devices.
void TaskGraphBuilder::list_passes(int stage, std::size_t device, ReplicaTasks& replica) {
  const StageCost& of_stage = cost_.stages[stage];
  const TensorGroup* group = of_stage.group_of(device);
  if (group == nullptr) {
    return;
  }
  const int rank = of_stage.rank(device);
  if (rank > 0) {
    replica.passes = replicas_[stage][device - rank].passes;
    return;
  }
  replica.passes = static_cast<std::int32_t>(exchanges_.passes.size());
  const ReplicaCost& cost = of_stage.replicas[device];
  const GroupPasses& of_group = *group->passes;
  const Seconds prediction = request_.schedule.predicts_weights ? cost.prediction : Seconds{0};
  int kind = 0;
  const auto add = [&](const GroupPass& pass, Seconds before, Seconds after) {
    exchanges_.passes.push_back({&pass, stage, kind++, before, after});
  };
  const HandOver &forward = cost.forward_hand_over, &backward = cost.backward_hand_over;
  add(of_group.forward, prediction + forward.before, forward.after);
  add(of_group.backward, backward.before, backward.after);
  add(of_group.backward_input, backward.before, backward.after);
  add(of_group.recompute, Seconds{0}, Seconds{0});
  add(of_group.terms, Seconds{0}, cost.optimizer - of_group.terms.seconds);
}

// Says which part of the work's time the device's group exchanges data.
void TaskGraphBuilder::note_exchange(std::optional<Pass> pass, const ReplicaTasks& replica, Work& work) const {
  const std::int32_t number = pass && replica.passes >= 0 ? replica.passes + static_cast<int>(*pass) : kNone;
  const Exchanged exchanged = number != kNone ? exchanges_.passes[number].pass->exchanged : Exchanged{};
  const bool any = (exchanged.all + exchanged.hidden).value > 0 && work.seconds.value > 0;
  work.pass = exchanged.all.value > 0 && work.seconds.value > 0 ? number : kNone; // others wait for nothing
  work.steps = any ? number : kNone;
  work.exchanging = any ? exchanged.all / work.seconds : 0;
  work.exchanging_latency = any ? exchanged.latency / work.seconds : 0;
  work.exchanging_hidden = any ? exchanged.hidden / work.seconds : 0;
  work.group_leg = any ? replica.group_leg : -1;
  if (any) {
    const auto& of_axes = exchanges_.passes[number].pass->of_axes;
    const Seconds all = std::accumulate(of_axes.begin(), of_axes.end(), Seconds{0});
    for (std::size_t i = 0; i < of_axes.size(); ++i) {
      work.exchanging_parts[i] = of_axes[i] / all;
    }
  }
}

double part_at_rest(const ReplicaCost& cost, TaskKind kind) {
  return kind == TaskKind::forward     ? cost.rest.forward
         : kind == TaskKind::optimizer ? cost.rest.step
                                       : cost.rest.backward;
}

double part_handing_over(const ReplicaCost& cost, TaskKind kind, Seconds seconds) {
  const Seconds handing = kind == TaskKind::forward    ? cost.forward_hand_over.all()
                          : kind == TaskKind::backward ? cost.backward_hand_over.all()
                                                       : Seconds{0};
  return handing.value > 0 ? handing / seconds : 0;
}

void TaskGraphBuilder::fill_replica(int stage, const ReplicaCost& cost, ReplicaTasks& replica) {
  const Schedule& schedule = request_.schedule;
  const bool again = !replica.recomputed.empty();
  const bool splits = schedule.splits_backward;
  const Bytes kept = again ? cost.memory.per_micro_batch : cost.memory.whole();
  const Bytes all = kept + (again ? cost.memory.workspace : Bytes{0});
  const int versions = schedule.versions.empty() ? 1 : schedule.versions[stage];
  FixedMemory& fixed = graph_.fixed_memory[replica.device];
  fixed.weights += cost.memory.weights * versions + cost.memory.frozen;
  fixed.gradients += cost.memory.gradients;
  fixed.optimizer += cost.memory.optimizer;
  fixed.buffers += cost.memory.buffers;
  Bytes& common = common_buffers_[replica.device];
  fixed.buffers += std::max(Bytes{0}, cost.memory.common_buffer - common);
  common = std::max(common, cost.memory.common_buffer);
  const Bytes passing = cost.memory.passing;
  Work work{.device = replica.device, .stage = stage, .to_stage = stage};
  replica.group_leg = add_group_leg(stage, cost);
  list_passes(stage, static_cast<std::size_t>(&cost - cost_.stages[stage].replicas.data()), replica);
  const auto block = [&](TaskKind kind, Seconds seconds, std::optional<Pass> pass, Bytes acquire, Bytes release) {
    work.kind = kind;
    work.seconds = seconds;
    work.at_rest = part_at_rest(cost, kind);
    work.handing_over = part_handing_over(cost, kind, seconds);
    work.acquire = acquire;
    work.release = release;
    note_exchange(pass, replica, work);
    return add(work, replica);
  };
  const Seconds prediction = schedule.predicts_weights ? cost.prediction : Seconds{0};
  replica.forward = block(TaskKind::forward, cost.forward + prediction, Pass::forward, kept + passing, passing);
  const BackwardMemory changes = backward_memory(cost.memory, all);
  replica.backward =
      block(TaskKind::backward, splits ? cost.backward_input : cost.backward(),
            splits ? Pass::backward_input : Pass::backward, changes.more + passing, changes.less + passing);
  if (splits || cost.deferred.value > 0) {
    replica.weight =
        block(TaskKind::weight, splits ? cost.backward_weight : cost.deferred, std::nullopt, Bytes{0}, changes.rest);
  }
  if (schedule.steps_each_micro_batch) {
    replica.optimizer = block(TaskKind::optimizer, cost.optimizer, Pass::optimizer, Bytes{0}, Bytes{0});
  }
  if (again) {
    work.kind = TaskKind::recompute;
    work.seconds = cost.recompute;
    work.handing_over = 0;
    work.at_rest = part_at_rest(cost, TaskKind::forward);
    work.acquire = cost.memory.workspace + cost.memory.passing_again;
    work.release = cost.memory.passing_again;
    note_exchange(Pass::recompute, replica, work);
    add_recompute(work, cost.memory, replica);
  }
}

// Adds the replica's R. Micro-batches without R hold all their activations from F on.
void TaskGraphBuilder::add_recompute(const Work& work, const StageMemory& memory, ReplicaTasks& replica) {
  const auto count = static_cast<int>(
      std::count_if(replica.recomputed.begin(), replica.recomputed.end(), [](int n) { return n >= 0; }));
  replica.recompute = add(work, count);
  std::vector<std::int32_t> others;
  for (std::int32_t m = 0; m < micro_batches_; ++m) {
    if (replica.recomputed[m] >= 0) {
      graph_.micro_batch[replica.recompute + replica.recomputed[m]] = m;
    } else if (replica.place(m) >= 0) {
      others.push_back(replica.place(m));
    }
  }
  const auto change = [&](TaskId block, Bytes acquire, Bytes release) {
    Work changed = graph_.works[graph_.work[block]];
    changed.acquire = acquire;
    changed.release = release;
    for (const std::int32_t place : others) {
      graph_.work[block + place] = static_cast<std::int32_t>(graph_.works.size());
    }
    graph_.works.push_back(changed);
  };
  if (!others.empty()) {
    const BackwardMemory changes = backward_memory(memory, memory.whole());
    change(replica.forward, memory.whole() + memory.passing, memory.passing);
    change(replica.backward, changes.more + memory.passing, changes.less + memory.passing);
    if (replica.weight != kNone) {
      change(replica.weight, Bytes{0}, changes.rest);
    }
  }
}

const TaskGraphBuilder::ReplicaTasks* TaskGraphBuilder::replica_on(int stage, int device) const {
  for (const ReplicaTasks& replica : replicas_[stage]) {
    if (replica.device == device) {
      return &replica;
    }
  }
  return nullptr;
}

// The schedule's rank of a device: the one given; otherwise the device's own number if ranks are devices, or the rank
// of its first stage if replicas share a rank.
std::size_t TaskGraphBuilder::rank_of(int device) const {
  if (!request_.rank_of.empty()) {
    return request_.rank_of[graph_.devices[device]];
  }
  if (request_.schedule.orders.size() == graph_.devices.size()) {
    return device;
  }
  for (int s = 0; s < stages(); ++s) {
    if (replica_on(s, device) != nullptr) {
      return s % request_.schedule.orders.size();
    }
  }
  return 0;
}

} // namespace stagecraft
