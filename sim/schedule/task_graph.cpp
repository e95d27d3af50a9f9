// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/task_graph.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "sim/cost/collective.hpp"

namespace stagecraft {
namespace {

constexpr TaskId kNone = -1;

// Which micro-batches a replica runs that takes whole ones in turn.
struct Turns {
  std::vector<std::int32_t> micro_batches; // ascending
  std::vector<std::int32_t> place;         // of each micro-batch among them, or -1
};

// The tasks of one replica of one stage: blocks of one task per micro-batch that it runs.
struct Lane {
  int device = 0; // index into the graph's devices
  TaskId forward = kNone, backward = kNone, weight = kNone, recompute = kNone, optimizer = kNone;
  TaskId last = kNone;                  // task after which the stage's gradients are complete
  std::vector<TaskId> parts;            // of the last backward, one per bucket of gradients; none: it is one
  const Turns* turns = nullptr;         // nothing: all micro-batches
  std::vector<std::int32_t> recomputed; // of each micro-batch its place in the block of R, or -1; empty: no R

  std::int32_t place(std::int32_t micro_batch) const {
    return turns != nullptr ? turns->place[micro_batch] : micro_batch;
  }
};

// Edges are collected as runs: `count` edges from task `from + i` to task `to + i`.
struct Run {
  TaskId from, to;
  std::int32_t count;
};

class Builder {
public:
  explicit Builder(const TaskGraphRequest& request)
      : request_(request), cost_(request.cost), micro_batches_(request.schedule.micro_batches) {}

  TaskGraph build() {
    list_devices();
    reserve();
    make_lanes();
    for (const StageEdge& edge : cost_.edges) {
      connect(edge);
    }
    write_programs();
    if (!fused_.empty()) {
      join_fused();
    }
    finish_iteration();
    if (request_.blocking_sends) {
      block_sends();
    }
    if (request_.loading != nullptr) {
      load_batches(*request_.loading);
    }
    if (!request_.schedule.flushes) {
      overlap_iterations();
    }
    write_edges();
    write_ties();
    return std::move(graph_);
  }

private:
  int stages() const { return static_cast<int>(cost_.stages.size()); }

  void list_devices() {
    DeviceId largest = -1;
    for (const StageCost& stage : cost_.stages) {
      for (const ReplicaCost& replica : stage.replicas) {
        largest = std::max(largest, replica.device);
      }
    }
    index_of_.assign(largest + 1, -1);
    for (const StageCost& stage : cost_.stages) {
      for (const ReplicaCost& replica : stage.replicas) {
        if (index_of_[replica.device] < 0) {
          index_of_[replica.device] = static_cast<int>(graph_.devices.size());
          graph_.devices.push_back(replica.device);
          graph_.fixed_memory.emplace_back();
        }
      }
    }
  }

  // Room for every block, so that nothing is copied while the graph grows.
  void reserve() {
    std::size_t lanes = 0;
    for (const StageCost& stage : cost_.stages) {
      lanes += stage.replicas.size();
    }
    std::size_t actions = 0;
    for (const auto& order : request_.schedule.orders) {
      actions += order.size();
      recomputes_ = recomputes_ || std::any_of(order.begin(), order.end(),
                                               [](const Action& action) { return action.kind == TaskKind::recompute; });
    }
    const std::size_t blocks =
        4 * lanes + 2 * cost_.edges.size(); // of one replica and leg; more only grow as they must
    graph_.work.reserve(blocks * micro_batches_ + 2 * lanes);
    graph_.micro_batch.reserve(blocks * micro_batches_ + 2 * lanes);
    graph_.program.reserve(actions + lanes);
    runs_.reserve(2 * blocks);
  }

  // Adds `count` tasks of one work; their micro-batches are 0 … count-1.
  TaskId add(const Work& work, int count) {
    const auto index = static_cast<std::int32_t>(graph_.works.size());
    const auto first = static_cast<TaskId>(graph_.work.size());
    graph_.works.push_back(work);
    graph_.work.resize(first + count, index);
    graph_.micro_batch.resize(first + count);
    std::iota(graph_.micro_batch.begin() + first, graph_.micro_batch.end(), 0);
    return first;
  }

  void make_lanes() {
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
  void read_orders(int stage, Lane& lane) {
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

  int count_of(const Lane& lane) const {
    return lane.turns != nullptr ? static_cast<int>(lane.turns->micro_batches.size()) : micro_batches_;
  }

  // Adds a task for each of the micro-batches that the lane runs.
  TaskId add(const Work& work, const Lane& lane) {
    const TaskId block = add(work, count_of(lane));
    if (lane.turns != nullptr) {
      std::copy(lane.turns->micro_batches.begin(), lane.turns->micro_batches.end(), graph_.micro_batch.begin() + block);
    }
    return block;
  }

  // What B takes (gradients that W needs, where they outweigh what B frees) or frees of a micro-batch that holds `all`,
  // and what W frees.
  struct Handover {
    Bytes more, less, rest;
  };
  Handover hand_over(const StageMemory& memory, Bytes all) const {
    const Bytes rest = request_.schedule.splits_backward ? memory.for_weights.value_or(all) : Bytes{0};
    return {std::max(rest - all, Bytes{0}), std::max(all - rest, Bytes{0}), rest};
  }

  void fill_lane(int stage, const ReplicaCost& replica, Lane& lane) {
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
  void add_recompute(const Work& work, const StageMemory& memory, Lane& lane) {
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

  // Adds the legs between two devices as a chain of transfers, `count` of each, of the micro-batches given or of all in
  // order; returns {first block, last block}, or none where nothing moves.
  std::pair<TaskId, TaskId> add_transfer(TaskKind kind, int from_device, int to_device, int from_stage, int to_stage,
                                         double bytes, int latencies, int count,
                                         const std::vector<std::int32_t>& micro_batches = {}) {
    const Route* route = request_.router.find(graph_.devices[from_device], graph_.devices[to_device]);
    check(route != nullptr, "two devices of a plan have no route");
    std::pair<TaskId, TaskId> blocks{kNone, kNone};
    for (const Leg& leg : route->legs) {
      const Seconds latency = leg.latency * latencies;
      const Work work{.kind = kind,
                      .device = from_device,
                      .leg = static_cast<std::int32_t>(graph_.legs.size()),
                      .stage = from_stage,
                      .to_stage = to_stage,
                      .seconds = latency + Bytes{bytes} / leg.bandwidth,
                      .latency = latency,
                      .bytes = bytes};
      graph_.legs.push_back(leg);
      const TaskId block = add(work, count);
      std::copy(micro_batches.begin(), micro_batches.end(), graph_.micro_batch.begin() + block);
      if (blocks.first == kNone) {
        blocks.first = block;
      } else {
        runs_.push_back({blocks.second, block, count});
      }
      blocks.second = block;
    }
    return blocks;
  }

  // Sends between the replicas of two stages that share a micro-batch: whose shares of it overlap, or whose turn it is.
  void connect(const StageEdge& edge) {
    const StageCost& sender = cost_.stages[edge.from];
    const StageCost& receiver = cost_.stages[edge.to];
    const auto from_degree = static_cast<std::size_t>(sender.tensor_parallel);
    const auto to_degree = static_cast<std::size_t>(receiver.tensor_parallel);
    double from_start = 0;
    for (std::size_t i = 0; i < lanes_[edge.from].size(); i += from_degree) {
      const double from_end = from_start + sender.replicas[i].share;
      double to_start = 0;
      for (std::size_t j = 0; j < lanes_[edge.to].size(); j += to_degree) {
        const double to_end = to_start + receiver.replicas[j].share;
        const double overlap = std::min(from_end, to_end) - std::max(from_start, to_start);
        const std::span<const Lane> from{lanes_[edge.from].data() + i, from_degree};
        const std::span<const Lane> to{lanes_[edge.to].data() + j, to_degree};
        const std::vector<std::int32_t> common = common_turns(from.front(), to.front());
        const bool all = from.front().turns == nullptr && to.front().turns == nullptr;
        if (overlap > 1e-12 && (all || !common.empty())) {
          const double bytes = std::round(edge.bytes.value * std::min(overlap, 1.0));
          connect(edge, from, to, bytes, common);
        }
        to_start = receiver.in_turn ? 0 : to_end;
      }
      from_start = sender.in_turn ? 0 : from_end;
    }
  }

  // Micro-batches that both run; none where both run all.
  std::vector<std::int32_t> common_turns(const Lane& one, const Lane& other) const {
    if (one.turns == nullptr || other.turns == nullptr) {
      const Turns* turns = one.turns != nullptr ? one.turns : other.turns;
      return turns != nullptr ? turns->micro_batches : std::vector<std::int32_t>{};
    }
    std::vector<std::int32_t> common;
    std::copy_if(one.turns->micro_batches.begin(), one.turns->micro_batches.end(), std::back_inserter(common),
                 [&](std::int32_t m) { return other.turns->place[m] >= 0; });
    return common;
  }

  // Between two replicas: every rank receives from one, and all ranks of the receiver wait for what any of them
  // receives, since they compute together. `common`: the micro-batches; none where all.
  void connect(const StageEdge& edge, std::span<const Lane> from, std::span<const Lane> to, double bytes,
               const std::vector<std::int32_t>& common) {
    const int from_degree = static_cast<int>(from.size());
    const int to_degree = static_cast<int>(to.size());
    const auto count = common.empty() ? micro_batches_ : static_cast<int>(common.size());
    for (int i = 0; i < from_degree; ++i) {
      for (int j = 0; j < to_degree; ++j) {
        if (from[i].device == to[j].device) {
          continue; // program order holds them
        }
        if (sends_to(i, from_degree, j)) {
          const auto activation = add_transfer(TaskKind::transfer, from[i].device, to[j].device, edge.from, edge.to,
                                               bytes, 1, count, common);
          add_runs(from[i].forward, &from[i], activation.first, nullptr, common);
          for (const Lane& lane : to) {
            add_runs(activation.second, nullptr, lane.forward, &lane, common);
          }
        }
        if (sends_to(j, to_degree, i)) {
          const auto gradient = add_transfer(TaskKind::transfer, to[j].device, from[i].device, edge.to, edge.from,
                                             bytes, 1, count, common);
          add_runs(to[j].backward, &to[j], gradient.first, nullptr, common);
          for (const Lane& lane : from) {
            wait_for_gradient(lane, gradient.second, common);
          }
        }
      }
    }
  }

  // Edges between two blocks for each micro-batch of `common`. A block of a lane has a task for each of the lane's
  // micro-batches, a block of transfers one for each of `common`.
  void add_runs(TaskId from, const Lane* sender, TaskId to, const Lane* receiver,
                const std::vector<std::int32_t>& common) {
    if (common.empty()) {
      runs_.push_back({from, to, micro_batches_});
      return;
    }
    for (std::int32_t n = 0; n < static_cast<std::int32_t>(common.size()); ++n) {
      runs_.push_back({from + (sender != nullptr ? sender->place(common[n]) : n),
                       to + (receiver != nullptr ? receiver->place(common[n]) : n), 1});
    }
  }

  void wait_for_gradient(const Lane& lane, TaskId gradient, const std::vector<std::int32_t>& common) {
    if (lane.recompute == kNone || request_.early_recompute) {
      add_runs(gradient, nullptr, lane.backward, &lane, common);
      return;
    }
    const auto count = common.empty() ? micro_batches_ : static_cast<std::int32_t>(common.size());
    for (std::int32_t n = 0; n < count; ++n) {
      const std::int32_t m = common.empty() ? n : common[n];
      const std::int32_t again = lane.recomputed[m];
      runs_.push_back({gradient + n, again >= 0 ? lane.recompute + again : lane.backward + lane.place(m), 1});
    }
  }

  const Lane* lane_on(int stage, int device) const {
    for (const Lane& lane : lanes_[stage]) {
      if (lane.device == device) {
        return &lane;
      }
    }
    return nullptr;
  }

  // The schedule's rank of a device: as given; else its own where ranks are devices, that of its first stage where
  // replicas share one.
  std::size_t rank_of(int device) const {
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

  TaskId task_of(const Lane& lane, TaskKind kind, std::int32_t micro_batch) const {
    switch (kind) {
    case TaskKind::forward:
      return lane.forward + lane.place(micro_batch);
    case TaskKind::backward:
      return lane.backward + lane.place(micro_batch);
    case TaskKind::weight:
      return lane.weight + lane.place(micro_batch);
    default:
      return lane.recompute + lane.recomputed[micro_batch];
    }
  }

  void write_programs() {
    std::vector<Lane*> lane_of(stages());
    for (int device = 0; device < static_cast<int>(graph_.devices.size()); ++device) {
      std::fill(lane_of.begin(), lane_of.end(), nullptr);
      for (auto& lanes : lanes_) {
        for (Lane& lane : lanes) {
          if (lane.device == device) {
            lane_of[&lanes - lanes_.data()] = &lane;
          }
        }
      }
      graph_.program_begin.push_back(static_cast<std::int32_t>(graph_.program.size()));
      write_program(request_.schedule.orders[rank_of(device)], lane_of);
      for (std::size_t s = 0; s < lane_of.size(); ++s) {
        if (Lane* lane = lane_of[s]; lane != nullptr && lane->optimizer == kNone) {
          lane->optimizer = add_optimizer(static_cast<int>(s), *lane);
          graph_.program.push_back(lane->optimizer);
        }
      }
    }
    graph_.program_begin.push_back(static_cast<std::int32_t>(graph_.program.size()));
  }

  void write_program(const std::vector<Action>& order, const std::vector<Lane*>& lane_of) {
    const Schedule& schedule = request_.schedule;
    const TaskKind completes = schedule.splits_backward ? TaskKind::weight : TaskKind::backward;
    const bool flushes = schedule.flushes, steps = schedule.steps_each_micro_batch;
    const bool divides = std::any_of(cost_.stages.begin(), cost_.stages.end(),
                                     [](const StageCost& stage) { return stage.buckets.size() > 1; });
    if (divides) {
      backwards_left_.assign(lane_of.size(), 0);
      for (const Action& action : order) {
        backwards_left_[action.stage] += action.kind == completes ? 1 : 0;
      }
    }
    for (const Action& action : order) {
      Lane* lane = lane_of[action.stage];
      const std::int32_t m = flushes ? action.micro_batch : action.micro_batch % micro_batches_;
      const TaskId task = task_of(*lane, action.kind, m);
      if (action.fused) {
        fused_.emplace_back(graph_.program.back(), task);
      }
      if (!flushes) {
        set_ahead(task, action.micro_batch / micro_batches_);
      }
      graph_.program.push_back(task);
      if (action.kind == TaskKind::backward || action.kind == TaskKind::weight) {
        lane->last = task;
      }
      if (divides && action.kind == completes && --backwards_left_[action.stage] == 0) {
        divide_last(*lane, cost_.stages[action.stage].buckets);
      }
      if (steps && action.kind == completes) {
        graph_.program.push_back(lane->optimizer + lane->place(m));
      }
    }
  }

  // The last backward of a stage that reduces its gradients bucket by bucket is one task per bucket. Activations are
  // kept until the last of them.
  void divide_last(Lane& lane, const std::vector<GradientBucket>& buckets) {
    if (buckets.size() < 2 || request_.schedule.steps_each_micro_batch) {
      return;
    }
    Work work = graph_.works[graph_.work[lane.last]];
    const Seconds whole = work.seconds;
    const Bytes release = std::exchange(work.release, Bytes{0});
    const std::int32_t micro_batch = graph_.micro_batch[lane.last];
    for (std::size_t k = 0; k < buckets.size(); ++k) {
      work.seconds = whole * buckets[k].part;
      work.release = k + 1 == buckets.size() ? release : Bytes{0};
      if (k == 0) {
        graph_.work[lane.last] = static_cast<std::int32_t>(graph_.works.size());
        graph_.works.push_back(work);
      } else {
        work.acquire = Bytes{0};
        const TaskId part = add(work, 1);
        graph_.micro_batch[part] = micro_batch;
        fused_.emplace_back(lane.last, part);
        graph_.program.push_back(part);
        lane.last = part;
      }
      lane.parts.push_back(lane.last);
    }
  }

  // Tasks run so many iterations before the one that their micro-batch belongs to.
  void set_ahead(TaskId task, int iterations) {
    if (iterations > 0) {
      ahead_.resize(graph_.work.size(), 0);
      ahead_[task] = iterations;
    }
  }

  TaskId add_optimizer(int stage, const Lane& lane) {
    Seconds seconds;
    for (const ReplicaCost& replica : cost_.stages[stage].replicas) {
      seconds = index_of_[replica.device] == lane.device ? replica.optimizer : seconds;
    }
    return add(
        {.kind = TaskKind::optimizer, .device = lane.device, .stage = stage, .to_stage = stage, .seconds = seconds}, 1);
  }

  TaskId add_join(TaskKind kind, int count) {
    graph_.joins += count;
    return add({.kind = kind}, count);
  }

  // Gradients complete -> all-reduce over replicas -> (barrier) -> optimiser.
  void finish_iteration() {
    const bool together = request_.barrier && request_.schedule.flushes && !request_.schedule.steps_each_micro_batch;
    const TaskId barrier = together ? add_join(TaskKind::optimizer, 1) : kNone;
    for (int s = 0; s < stages(); ++s) {
      const int degree = cost_.stages[s].tensor_parallel;
      const bool replicated = static_cast<int>(lanes_[s].size()) > degree;
      for (int rank = 0; rank < degree; ++rank) {
        const int steps = request_.schedule.steps_each_micro_batch ? count_of(lanes_[s][rank]) : 1;
        const TaskId reduced = replicated ? add_all_reduce(s, rank, steps) : kNone;
        for (std::size_t i = rank; i < lanes_[s].size(); i += degree) {
          const Lane& lane = lanes_[s][i];
          if (barrier != kNone) {
            runs_.push_back({reduced != kNone ? reduced : lane.last, barrier, 1});
            runs_.push_back({barrier, lane.optimizer, 1});
          } else if (reduced != kNone) {
            runs_.push_back({reduced, lane.optimizer, steps});
          }
        }
      }
    }
  }

  // The task after which a lane's gradients are complete, of the iteration; or the block of them, of micro-batches.
  TaskId complete(const Lane& lane) const {
    if (!request_.schedule.steps_each_micro_batch) {
      return lane.last;
    }
    return lane.weight != kNone ? lane.weight : lane.backward;
  }

  // A ring over the replicas' shards of one rank: each sends 2 (r-1)/r of the gradients to its neighbour, all at once
  // or bucket by bucket; a join stands before and after. `steps` times an iteration. Returns the block of the joins
  // after.
  TaskId add_all_reduce(int stage, int rank, int steps) {
    std::vector<const Lane*> ring;
    for (std::size_t i = rank; i < lanes_[stage].size(); i += cost_.stages[stage].tensor_parallel) {
      ring.push_back(&lanes_[stage][i]);
    }
    if (ring.front()->parts.empty()) {
      std::vector<TaskId> made;
      for (const Lane* lane : ring) {
        made.push_back(complete(*lane));
      }
      return add_ring(stage, ring, cost_.stages[stage].gradients, made, steps);
    }
    TaskId before = kNone;
    for (std::size_t k = 0; k < ring.front()->parts.size(); ++k) { // one after the other, as on one stream
      std::vector<TaskId> made;
      for (const Lane* lane : ring) {
        made.push_back(lane->parts[k]);
      }
      if (before != kNone) {
        made.push_back(before);
      }
      before = add_ring(stage, ring, cost_.stages[stage].buckets[k].bytes, made, 1);
    }
    return before;
  }

  // One ring of `gradients` once all of `made` are; returns the block of the joins after it.
  TaskId add_ring(int stage, const std::vector<const Lane*>& ring, Bytes gradients, const std::vector<TaskId>& made,
                  int steps) {
    const int ranks = static_cast<int>(ring.size());
    const TaskId begin = add_join(TaskKind::all_reduce, steps);
    const TaskId end = add_join(TaskKind::all_reduce, steps);
    const double bytes = std::round(ring_all_reduce_bytes(ranks, gradients).value);
    for (const TaskId task : made) {
      runs_.push_back({task, begin, steps});
    }
    for (int i = 0; i < ranks; ++i) {
      const auto sent = add_transfer(TaskKind::all_reduce, ring[i]->device, ring[(i + 1) % ranks]->device, stage, stage,
                                     bytes, ring_all_reduce_steps(ranks), steps);
      runs_.push_back({begin, sent.first, steps});
      runs_.push_back({sent.second, end, steps});
    }
    return end;
  }

  // Fused tasks are one: the first waits for what any of them needs, and what any of them makes leaves after the last.
  // Forward and backward together take `fused` of the time that they take one after the other.
  void join_fused() {
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
    std::vector<Run> runs;
    runs.reserve(runs_.size());
    for (const Run& run : runs_) {
      for (int i = 0; i < run.count; ++i) {
        runs.push_back({tail[run.from + i], head[run.to + i], 1});
      }
    }
    runs_ = std::move(runs);
  }

  void shorten_fused(const std::vector<TaskId>& head) {
    const auto kind_of = [&](TaskId task) { return graph_.works[graph_.work[task]].kind; };
    std::map<TaskId, std::vector<TaskId>> groups;
    for (const auto& [before, task] : fused_) {
      std::vector<TaskId>& group = groups[head[task]];
      if (group.empty()) {
        group.push_back(before);
      }
      group.push_back(task);
    }
    std::map<std::int32_t, std::int32_t> shorter; // work -> the same in a group of both kinds
    for (const auto& [first, group] : groups) {
      const auto has = [&](TaskKind kind) {
        return std::any_of(group.begin(), group.end(), [&](TaskId task) { return kind_of(task) == kind; });
      };
      if (request_.fused == 1 || !has(TaskKind::forward) || !has(TaskKind::backward)) {
        continue;
      }
      for (const TaskId task : group) {
        const auto [slot, fresh] =
            shorter.try_emplace(graph_.work[task], static_cast<std::int32_t>(graph_.works.size()));
        if (fresh) {
          Work work = graph_.works[graph_.work[task]];
          work.seconds = work.seconds * request_.fused;
          graph_.works.push_back(work);
        }
        graph_.work[task] = slot->second;
      }
    }
  }

  // Where iterations overlap, an edge from a task that runs ahead of its iteration leads into a later one.
  void overlap_iterations() {
    graph_.overlaps = true;
    ahead_.resize(graph_.work.size(), 0);
    std::vector<TaskId> maker(graph_.work.size(), kNone);
    for (const Run& run : runs_) {
      for (int i = 0; i < run.count; ++i) {
        maker[run.to + i] = run.from + i;
      }
    }
    for (TaskId task = 0; task < graph_.tasks(); ++task) { // what is made early leaves early; legs stand in order
      if (maker[task] != kNone && graph_.works[graph_.work[task]].transfers()) {
        ahead_[task] = ahead_[maker[task]];
      }
    }
    std::vector<Run> runs;
    runs.reserve(runs_.size());
    for (const Run& run : runs_) {
      for (int i = 0; i < run.count; ++i) {
        const int later = ahead_[run.from + i] - ahead_[run.to + i];
        if (later > 0) {
          ties_.emplace_back(run.from + i, Tie{run.to + i, later, false});
        } else {
          runs.push_back({run.from + i, run.to + i, 1});
        }
      }
    }
    runs_ = std::move(runs);
    graph_.ahead = std::move(ahead_);
  }

  // A device computes nothing while one of its sends is under way.
  void block_sends() {
    std::vector<TaskId> next(graph_.work.size(), kNone);
    for (std::size_t device = 0; device < graph_.devices.size(); ++device) {
      const auto program = graph_.program_of(device);
      for (std::size_t at = 0; at + 1 < program.size(); ++at) {
        next[program[at]] = program[at + 1];
      }
    }
    const std::size_t runs = runs_.size();
    for (std::size_t r = 0; r < runs; ++r) {
      const Run run = runs_[r];
      for (int i = 0; i < run.count; ++i) {
        const Work& to = graph_.works[graph_.work[run.to + i]];
        if (to.transfers() && graph_.works[graph_.work[run.from + i]].computes() && next[run.from + i] != kNone) {
          runs_.push_back({run.to + i, next[run.from + i], 1});
        }
      }
    }
  }

  // Each device of the first stage has a loader: read, load and copy before each of its forwards. The ties keep its
  // workers and its queue: batch n waits until its worker is done with batch n - workers, and until batch n - queue is
  // taken, which is when that one's forward starts. Batches come in the order in which the device takes them.
  void load_batches(const Loading& loading) {
    graph_.workers = loading.workers;
    graph_.queue = loading.queue;
    graph_.host = loading.host;
    const int repeats = std::min(loading.workers, loading.queue);
    graph_.cycle = repeats / std::gcd(repeats, micro_batches_);
    for (std::size_t replica = 0; replica < lanes_.front().size(); ++replica) {
      const Lane& lane = lanes_.front()[replica];
      const ReplicaLoading& one = loading.replicas[replica];
      const int count = count_of(lane);
      const TaskId load = add({.kind = TaskKind::load, .node = one.node, .seconds = one.decode}, lane);
      const TaskId read = add_copies(TaskKind::read, lane, one.disk, one.read);
      const TaskId copy = add_copies(TaskKind::copy, lane, one.copy, one.copied);
      if (read != kNone) {
        runs_.push_back({read, load, count});
      }
      runs_.push_back({load, copy != kNone ? copy : lane.forward, count});
      if (copy != kNone) {
        runs_.push_back({copy, lane.forward, count});
      }
      std::vector<TaskId> taken; // forwards of the stage in program order
      for (const TaskId task : graph_.program_of(lane.device)) {
        if (task >= lane.forward && task < lane.forward + count) {
          taken.push_back(task - lane.forward);
        }
      }
      const TaskId claim = read != kNone ? read : load;
      for (int n = 0; n < count; ++n) {
        const auto tie = [&](TaskId from, int ahead, bool from_start) {
          const TaskId to = claim + taken[(n + ahead) % count];
          ties_.emplace_back(from, Tie{to, (n + ahead) / count, from_start});
        };
        tie(load + taken[n], loading.workers, false);
        tie(lane.forward + taken[n], loading.queue, true);
      }
    }
  }

  // One transfer per micro-batch for a device's loader; none where it takes no time.
  TaskId add_copies(TaskKind kind, const Lane& lane, const Leg& leg, Bytes bytes) {
    if (bytes.value < 1 || std::isinf(leg.bandwidth.value)) {
      return kNone;
    }
    const auto index = static_cast<std::int32_t>(graph_.legs.size());
    graph_.legs.push_back(leg);
    return add({.kind = kind,
                .device = lane.device,
                .leg = index,
                .seconds = leg.latency + bytes / leg.bandwidth,
                .latency = leg.latency,
                .bytes = bytes.value},
               lane);
  }

  void write_ties() {
    if (ties_.empty()) {
      return;
    }
    std::stable_sort(ties_.begin(), ties_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    graph_.tie_begin.assign(graph_.work.size() + 1, 0);
    for (const auto& [from, tie] : ties_) {
      ++graph_.tie_begin[from + 1];
      graph_.ties.push_back(tie);
    }
    std::partial_sum(graph_.tie_begin.begin(), graph_.tie_begin.end(), graph_.tie_begin.begin());
  }

  void write_edges() {
    const std::size_t tasks = graph_.work.size();
    graph_.waits.assign(tasks, 0);
    graph_.successor_begin.assign(tasks + 1, 0);
    std::int32_t* const begin = graph_.successor_begin.data();
    for (const Run& run : runs_) { // each array for itself, so that several at once are counted
      std::for_each_n(begin + run.from + 1, run.count, [](std::int32_t& count) { ++count; });
      std::for_each_n(graph_.waits.data() + run.to, run.count, [](std::int32_t& count) { ++count; });
    }
    for (std::size_t task = 0; task < tasks; ++task) {
      begin[task + 1] += begin[task];
    }
    graph_.successors.resize(begin[tasks]);
    TaskId* const successors = graph_.successors.data();
    for (const auto [from, to, count] : runs_) { // fills each list from its front, moving its begin; undone below
      for (std::int32_t i = 0; i < count; ++i) {
        successors[begin[from + i]++] = to + i;
      }
    }
    std::copy_backward(begin, begin + tasks, begin + tasks + 1);
    begin[0] = 0;
  }

  const TaskGraphRequest& request_;
  const PlanCost& cost_;
  int micro_batches_;
  TaskGraph graph_;
  std::vector<int> index_of_;
  std::vector<std::vector<Lane>> lanes_;
  std::vector<std::unique_ptr<Turns>> turns_;
  bool recomputes_ = false;         // any micro-batch
  std::vector<int> backwards_left_; // [stage], while a program is written, where any is divided
  std::vector<Run> runs_;
  std::vector<std::pair<TaskId, TaskId>> fused_; // (task, the next one, fused with it), program by program
  std::vector<std::int32_t> ahead_;              // [task]: iterations that it runs before its own; may be short
  std::vector<std::pair<TaskId, Tie>> ties_;     // by the task they start from
};

} // namespace

template <class Count> std::vector<Count> TaskGraph::waits_over(int iterations) const {
  std::vector<Count> counts;
  counts.reserve(waits.size() * iterations);
  for (int i = 0; i < iterations; ++i) {
    counts.insert(counts.end(), waits.begin(), waits.end());
  }
  for (const Tie& tie : ties) {
    for (int i = tie.iterations; i < iterations; ++i) {
      ++counts[static_cast<std::size_t>(i) * waits.size() + tie.to];
    }
  }
  return counts;
}
template std::vector<std::int32_t> TaskGraph::waits_over(int iterations) const;
template std::vector<double> TaskGraph::waits_over(int iterations) const;

TaskGraph make_task_graph(const TaskGraphRequest& request) { return Builder(request).build(); }

} // namespace stagecraft
