// The works of each stage's replicas: forwards, backwards, recompute.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/schedule/task_graph/task_graph_builder.hpp"

namespace stagecraft {

void TaskGraphBuilder::make_lanes() {
  lanes_.resize(stages());
  for (int s = 0; s < stages(); ++s) {
    for (const ReplicaCost& replica : cost_.stages[s].replicas) {
      lanes_[s].push_back({.device = index_of_[replica.device]});
    }
  }
  for (int s = 0; s < stages(); ++s) {
    for (std::size_t i = 0; i < lanes_[s].size(); ++i) {
      read_orders(s, lanes_[s][i]);
      fill_lane(s, cost_.stages[s].replicas[i], lanes_[s][i]);
    }
  }
}

// What the order of the lane's rank says of the stage: the micro-batches it runs, and which of them again.
void TaskGraphBuilder::read_orders(int stage, Lane& lane) {
  const bool in_turn = cost_.stages[stage].in_turn;
  if (!in_turn && !recomputes_) {
    return;
  }
  std::vector<char> here(micro_batches_, 0);
  int again = 0;
  for (const Action& action : request_.schedule.orders[rank_of(lane.device)]) {
    const std::int32_t m = action.micro_batch % micro_batches_;
    if (action.stage == stage && action.kind == TaskKind::forward) {
      here[m] = 1;
    } else if (action.stage == stage && action.kind == TaskKind::recompute) {
      lane.recomputed.resize(micro_batches_, -1);
      lane.recomputed[m] = again++;
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
    lane.turns = &turns;
  }
}

int TaskGraphBuilder::count_of(const Lane& lane) const {
  return lane.turns != nullptr ? static_cast<int>(lane.turns->micro_batches.size()) : micro_batches_;
}

// Adds a task for each of the micro-batches that the lane runs.
TaskId TaskGraphBuilder::add(const Work& work, const Lane& lane) {
  const TaskId block = add(work, count_of(lane));
  if (lane.turns != nullptr) {
    std::copy(lane.turns->micro_batches.begin(), lane.turns->micro_batches.end(), graph_.micro_batch.begin() + block);
  }
  return block;
}

TaskGraphBuilder::Handover TaskGraphBuilder::hand_over(const StageMemory& memory, Bytes all) const {
  const Bytes rest = request_.schedule.splits_backward ? memory.for_weights.value_or(all) : Bytes{0};
  return {std::max(rest - all, Bytes{0}), std::max(all - rest, Bytes{0}), rest};
}

void TaskGraphBuilder::fill_lane(int stage, const ReplicaCost& replica, Lane& lane) {
  const Schedule& schedule = request_.schedule;
  const bool again = !lane.recomputed.empty();
  const bool splits = schedule.splits_backward;
  const Bytes kept = again ? replica.memory.per_micro_batch : replica.memory.whole();
  const Bytes all = kept + (again ? replica.memory.workspace : Bytes{0});
  const int versions = schedule.versions.empty() ? 1 : schedule.versions[stage];
  FixedMemory& fixed = graph_.fixed_memory[lane.device];
  fixed.weights += replica.memory.weights * versions;
  fixed.gradients += replica.memory.gradients;
  fixed.optimizer += replica.memory.optimizer;
  fixed.buffers += replica.memory.buffers;
  Work work{.device = lane.device, .stage = stage, .to_stage = stage};
  const auto block = [&](TaskKind kind, Seconds seconds, Bytes acquire, Bytes release) {
    work.kind = kind;
    work.seconds = seconds;
    work.acquire = acquire;
    work.release = release;
    return add(work, lane);
  };
  const Seconds prediction = schedule.predicts_weights ? replica.prediction : Seconds{0};
  lane.forward = block(TaskKind::forward, replica.forward + prediction, kept, Bytes{0});
  const Handover handover = hand_over(replica.memory, all);
  lane.backward =
      block(TaskKind::backward, splits ? replica.backward_input : replica.backward(), handover.more, handover.less);
  if (splits) {
    lane.weight = block(TaskKind::weight, replica.backward_weight, Bytes{0}, handover.rest);
  }
  if (schedule.steps_each_micro_batch) {
    lane.optimizer = block(TaskKind::optimizer, replica.optimizer, Bytes{0}, Bytes{0});
  }
  if (again) {
    work.kind = TaskKind::recompute;
    work.seconds = replica.recompute;
    work.acquire = replica.memory.workspace;
    work.release = Bytes{0};
    add_recompute(work, replica.memory, lane);
  }
}

// The lane's R; micro-batches without one hold all their activations from F on.
void TaskGraphBuilder::add_recompute(const Work& work, const StageMemory& memory, Lane& lane) {
  const auto count =
      static_cast<int>(std::count_if(lane.recomputed.begin(), lane.recomputed.end(), [](int n) { return n >= 0; }));
  lane.recompute = add(work, count);
  std::vector<std::int32_t> others;
  for (std::int32_t m = 0; m < micro_batches_; ++m) {
    if (lane.recomputed[m] >= 0) {
      graph_.micro_batch[lane.recompute + lane.recomputed[m]] = m;
    } else if (lane.place(m) >= 0) {
      others.push_back(lane.place(m));
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
    const Handover handover = hand_over(memory, memory.whole());
    change(lane.forward, memory.whole(), Bytes{0});
    change(lane.backward, handover.more, handover.less);
    if (lane.weight != kNone) {
      change(lane.weight, Bytes{0}, handover.rest);
    }
  }
}

const TaskGraphBuilder::Lane* TaskGraphBuilder::lane_on(int stage, int device) const {
  for (const Lane& lane : lanes_[stage]) {
    if (lane.device == device) {
      return &lane;
    }
  }
  return nullptr;
}

// The schedule's rank of a device: as given; else its own where ranks are devices, that of its first stage where
// replicas share one.
std::size_t TaskGraphBuilder::rank_of(int device) const {
  if (!request_.rank_of.empty()) {
    return request_.rank_of[graph_.devices[device]];
  }
  if (request_.schedule.orders.size() == graph_.devices.size()) {
    return device;
  }
  for (int s = 0; s < stages(); ++s) {
    if (lane_on(s, device) != nullptr) {
      return s % request_.schedule.orders.size();
    }
  }
  return 0;
}

} // namespace stagecraft
