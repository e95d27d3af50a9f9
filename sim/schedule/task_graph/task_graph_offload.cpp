// What devices leave to their hosts: gradients and the step of the optimiser, weights, activations.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "sim/base/improves.hpp"
#include "sim/schedule/task_graph/task_graph_builder.hpp"

namespace stagecraft {

// Adds copies between a device and its host, shared by all that cross the same links; none of nothing.
TaskId TaskGraphBuilder::add_copy(TaskKind kind, int stage, std::size_t device, Bytes bytes, int count) {
  const HostCost& host = *host_of(stage, device);
  const int own = replicas_[stage][device].device;
  const double whole = std::round(bytes.value);
  if (whole < 1) {
    return kNone;
  }
  const Leg& leg = kind == TaskKind::to_host ? host.to_host : host.from_host;
  const auto [known, is_new] = copy_legs_.try_emplace({own, kind}, static_cast<std::int32_t>(graph_.legs.size()));
  if (is_new) {
    graph_.legs.push_back(folded(leg, graph_.stands_for(static_cast<std::size_t>(own))));
  }
  return add({.kind = kind,
              .device = own,
              .leg = known->second,
              .stage = stage,
              .to_stage = stage,
              .members = add_members({own}),
              .seconds = leg.latency + Bytes{whole} / leg.bandwidth,
              .latency = leg.latency,
              .bytes = whole},
             count);
}

// A copy follows those of its direction that belong to earlier places of the device's program.
void TaskGraphBuilder::queue_copy(TaskKind kind, int stage, std::size_t device, std::int32_t place, TaskId copy) {
  queues_[{replicas_[stage][device].device, kind}].push_back({place, {copy, copy}});
}

bool TaskGraphBuilder::leaves_by_unit(int stage) const {
  return copies_gradients_by_unit(request_.offload, request_.sharding, cost_.stages[stage]);
}

// Adds the host's step of what it steps for a device, a flow through the host's memory that takes no less than its
// cores need, and, at this point of the program, the device's wait for it.
void TaskGraphBuilder::write_host_step(int stage, ReplicaTasks& replica) {
  const HostCost& host = *host_of(stage, static_cast<std::size_t>(&replica - replicas_[stage].data()));
  const Bytes moved{std::round(host.moved.value)};
  const LinkId memory = request_.router.platform().nodes[host.node].memory;
  const Seconds flowing = memory >= 0 ? moved / host.memory : Seconds{0};
  Work step{.kind = TaskKind::host_step,
            .device = replica.device,
            .leg = static_cast<std::int32_t>(graph_.legs.size()),
            .stage = stage,
            .to_stage = stage,
            .members = add_members({replica.device}),
            .latency = std::max(Seconds{0}, host.step - flowing),
            .bytes = moved.value};
  step.seconds = step.latency + flowing;
  const Leg alone{{}, step.seconds, BytesPerSecond{kInfinity}};
  graph_.legs.push_back(memory >= 0 ? folded({{memory}, Seconds{0}, host.memory},
                                             graph_.stands_for(static_cast<std::size_t>(replica.device)))
                                    : alone);
  replica.host_step = add(step, 1);
  replica.landed = add({.kind = TaskKind::optimizer, .device = replica.device, .stage = stage, .to_stage = stage}, 1);
  graph_.program.push_back(replica.landed);
}

// The host steps once gradients are complete, or all stages' are, and there; what it has made is copied back.
void TaskGraphBuilder::step_on_host(int stage, std::size_t device, TaskId complete, TaskId barrier) {
  const ReplicaTasks& replica = replicas_[stage][device];
  const HostCost& host = *host_of(stage, device);
  const TaskId may_step = barrier != kNone ? barrier : complete;
  edge_runs_.push_back({may_step, replica.host_step, 1});
  const bool left_before = request_.offload.gradients && (leaves_by_unit(stage) || !replica.parts.empty());
  if (!left_before) {
    const TaskId down = add_copy(TaskKind::to_host, stage, device, host.gradients);
    if (down != kNone) {
      edge_runs_.push_back({request_.offload.gradients ? complete : may_step, down, 1});
      edge_runs_.push_back({down, replica.host_step, 1});
      queue_copy(TaskKind::to_host, stage, device, kLastPlace, down);
    }
  }
  const bool alone = complete == replica.last; // no others reduce with it
  for (std::size_t k = 0; alone && k < replica.parts.size(); ++k) {
    leave_bucket(stage, device, k, replica.parts[k]);
  }
  const TaskId up = add_copy(TaskKind::from_host, stage, device, host.weights);
  edge_runs_.push_back({replica.host_step, up != kNone ? up : replica.landed, 1});
  if (up != kNone) {
    edge_runs_.push_back({up, replica.landed, 1});
    queue_copy(TaskKind::from_host, stage, device, kLastPlace, up);
  }
}

// A device's part of a bucket of gradients leaves once it is reduced.
void TaskGraphBuilder::leave_bucket(int stage, std::size_t device, std::size_t bucket, TaskId reduced) {
  const ReplicaTasks& replica = replicas_[stage][device];
  if (replica.host_step == kNone || !request_.offload.gradients) {
    return;
  }
  const StageCost& cost = cost_.stages[stage];
  const GradientBucket& own = cost.buckets[bucket];
  const double part = (own.bytes + own.of_experts) / (cost.gradients + cost.expert_gradients);
  const TaskId down = add_copy(TaskKind::to_host, stage, device, host_of(stage, device)->gradients * part);
  if (down != kNone) {
    edge_runs_.push_back({reduced, down, 1});
    edge_runs_.push_back({down, replica.host_step, 1});
    const auto left = static_cast<std::int32_t>(cost.buckets.size() - bucket);
    queue_copy(TaskKind::to_host, stage, device, kLastPlace - left, down);
  }
}

// A device's part of each unit's gradients leaves once it is reduced. `reduced`: [step], the task after which it is.
void TaskGraphBuilder::leave_gradients(int stage, std::size_t device, const std::vector<TaskId>& reduced, double part,
                                       Whose whose) {
  const ReplicaTasks& replica = replicas_[stage][device];
  if (replica.host_step == kNone || !leaves_by_unit(stage)) {
    return;
  }
  const std::vector<std::int32_t>& places = unit_steps_[stage][device];
  for (std::size_t n = 0; n < places.size(); ++n) {
    if (reduced[n] == kNone) {
      continue;
    }
    const TaskId step = graph_.program[places[n]];
    const ShardUnit& unit = cost_.stages[stage].units[unit_of_[step]];
    const Bytes bytes = whose == Whose::experts ? unit.expert_gradients : unit.gradients;
    const TaskId down = add_copy(TaskKind::to_host, stage, device, bytes * (part * request_.offload.optimizer));
    if (down != kNone) {
      graph_.micro_batch[down] = graph_.micro_batch[step];
      edge_runs_.push_back({reduced[n], down, 1});
      edge_runs_.push_back({down, replica.host_step, 1});
      queue_copy(TaskKind::to_host, stage, device, places[n], down);
    }
  }
}

// Where weights rest with hosts, a device's part of a unit's is copied to it before it is gathered; returns what comes
// first, the copy or the gather.
TaskId TaskGraphBuilder::fetch_weights(int stage, std::size_t device, std::size_t step, double part, Whose whose,
                                       TaskId gather) {
  if (!request_.offload.parameters) {
    return gather;
  }
  const std::int32_t place = unit_steps_[stage][device][step];
  const TaskId task = graph_.program[place];
  const ShardUnit& unit = cost_.stages[stage].units[unit_of_[task]];
  const Bytes bytes = whose == Whose::experts ? unit.expert_weights : unit.weights;
  const TaskId copy = add_copy(TaskKind::from_host, stage, device, bytes * part);
  if (copy == kNone) {
    return gather;
  }
  graph_.micro_batch[copy] = graph_.micro_batch[task];
  edge_runs_.push_back({copy, gather, 1});
  queue_copy(TaskKind::from_host, stage, device, place, copy);
  return copy;
}

// What a replica shares with no other: its weights come from the host, and its gradients go there, unit by unit.
void TaskGraphBuilder::run_alone(int stage, std::size_t device, Whose whose, bool leaves) {
  const ReplicaTasks& replica = replicas_[stage][device];
  const std::vector<std::int32_t>& places = unit_steps_[stage][device];
  const std::vector<UnitStep> steps = unit_steps(places);
  const std::vector<char> gathers = steps_that_gather(request_.sharding.reshard, steps);
  for (std::size_t n = 0; n < places.size(); ++n) {
    const TaskId step = graph_.program[places[n]];
    const TaskId copy = gathers[n] != 0 ? fetch_weights(stage, device, n, 1, whose, step) : step;
    const std::int32_t issue = places[n] - 1 - request_.sharding.ahead(steps[n].pass != UnitPass::forward);
    if (copy != step && issue >= graph_.program_begin[replica.device]) {
      edge_runs_.push_back({graph_.program[issue], copy, 1});
    } else if (copy != step) {
      ties_.emplace_back(replica.stepped(), Tie{copy, 1, false});
    }
  }
  if (!leaves) {
    return;
  }
  const std::vector<char> reduces = steps_that_reduce(request_.sharding.reduce, steps, completes());
  std::vector<TaskId> made(places.size(), kNone);
  for (std::size_t n = 0; n < places.size(); ++n) {
    made[n] = reduces[n] != 0 ? graph_.program[places[n]] : kNone;
  }
  leave_gradients(stage, device, made, 1, whose);
}

// Activations of units leave after their forwards and are back before they are needed.
void TaskGraphBuilder::leave_activations(int stage, std::size_t device) {
  const StageCost& cost = cost_.stages[stage];
  const std::vector<std::int32_t>& places = unit_steps_[stage][device];
  std::vector<std::int32_t> micro_batches;
  std::vector<std::size_t> steps_away;
  for (const std::int32_t place : places) {
    micro_batches.push_back(graph_.micro_batch[graph_.program[place]]);
  }
  for (const ShardUnit& unit : cost.units) {
    steps_away.push_back(unit.steps_away());
  }
  for (const UnitTrip& trip : trips_of(unit_steps(places), micro_batches, steps_away)) {
    const Bytes bytes = cost.units[trip.unit].stash * cost.replicas[device].share;
    const TaskId down = add_copy(TaskKind::to_host, stage, device, bytes);
    const TaskId up = add_copy(TaskKind::from_host, stage, device, bytes);
    if (down == kNone) {
      continue;
    }
    graph_.micro_batch[down] = graph_.micro_batch[up] = micro_batches[trip.from];
    const std::int32_t from = places[trip.from], to = places[trip.to];
    edge_runs_.push_back({graph_.program[from], down, 1});
    edge_runs_.push_back({down, graph_.program[places[trip.gone_by]], 1});
    edge_runs_.push_back({down, up, 1});
    edge_runs_.push_back({graph_.program[places[trip.back_after]], up, 1});
    edge_runs_.push_back({up, graph_.program[to], 1});
    queue_copy(TaskKind::to_host, stage, device, from, down);
    queue_copy(TaskKind::from_host, stage, device, to, up);
  }
}

// Adds the copies of all stages' units.
void TaskGraphBuilder::leave_to_hosts() {
  for (int s = 0; s < stages(); ++s) {
    const StageCost& cost = cost_.stages[s];
    for (std::size_t device = 0; device < replicas_[s].size() && !cost.units.empty(); ++device) {
      if (!cost.shares_units()) {
        run_alone(s, device, Whose::dense);
        run_alone(s, device, Whose::experts);
      }
      if (request_.offload.activations > 0) {
        leave_activations(s, device);
      }
    }
  }
}

} // namespace stagecraft
