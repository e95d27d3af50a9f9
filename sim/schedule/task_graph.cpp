// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/task_graph.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/cost/collective.hpp"

namespace stagecraft {
namespace {

constexpr TaskId kNone = -1;

// The tasks of one replica of one stage: blocks of one task per micro-batch.
struct Lane {
  int device = 0; // index into the graph's devices
  TaskId forward = kNone, backward = kNone, weight = kNone, recompute = kNone, optimizer = kNone;
  TaskId last = kNone; // task after which the stage's gradients are complete
};

// What the orders recompute of one stage: of each micro-batch its number among those recomputed, or -1.
struct Recomputed {
  std::vector<std::int32_t> number;
  int count = 0;
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
    finish_iteration();
    if (request_.blocking_sends) {
      block_sends();
    }
    if (request_.loading != nullptr) {
      load_batches(*request_.loading);
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
    recomputed_.resize(stages());
    for (const auto& order : request_.schedule.orders) {
      for (const Action& action : order) {
        if (action.kind == TaskKind::recompute) {
          Recomputed& stage = recomputed_[action.stage];
          stage.number.resize(micro_batches_, -1);
          std::int32_t& number = stage.number[action.micro_batch];
          number = number < 0 ? stage.count++ : number; // replicas have orders of their own
        }
      }
    }
    lanes_.resize(stages());
    for (int s = 0; s < stages(); ++s) {
      for (const ReplicaCost& replica : cost_.stages[s].replicas) {
        lanes_[s].push_back(make_lane(s, replica));
      }
    }
  }

  Lane make_lane(int stage, const ReplicaCost& replica) {
    const int again = recomputed_[stage].count;
    const bool splits = request_.schedule.splits_backward;
    const Bytes kept = replica.memory.per_micro_batch;
    const Bytes all = kept + (again > 0 ? replica.memory.workspace : Bytes{0});
    Lane lane;
    lane.device = index_of_[replica.device];
    graph_.fixed_memory[lane.device] += replica.memory.fixed(request_.versions) - replica.memory.workspace;
    Work work{.device = lane.device, .stage = stage, .to_stage = stage};
    const auto block = [&](TaskKind kind, Seconds seconds, Bytes acquire, Bytes release) {
      work.kind = kind;
      work.seconds = seconds;
      work.acquire = acquire;
      work.release = release;
      return add(work, micro_batches_);
    };
    lane.forward = block(TaskKind::forward, replica.forward, kept, Bytes{0});
    const Seconds whole = replica.backward();
    lane.backward =
        block(TaskKind::backward, splits ? replica.backward_input : whole, Bytes{0}, splits ? Bytes{0} : all);
    if (splits) {
      lane.weight = block(TaskKind::weight, replica.backward_weight, Bytes{0}, all);
    }
    if (again > 0) {
      work.kind = TaskKind::recompute;
      work.seconds = replica.recompute;
      work.acquire = replica.memory.workspace;
      work.release = Bytes{0};
      lane.recompute = add(work, again);
      keep_the_others(stage, replica, lane);
    }
    return lane;
  }

  // Micro-batches that are not recomputed hold all their activations from F on.
  void keep_the_others(int stage, const ReplicaCost& replica, const Lane& lane) {
    const Recomputed& recomputed = recomputed_[stage];
    const auto change = [&](TaskId block, Bytes acquire, Bytes release) {
      Work work = graph_.works[graph_.work[block]];
      work.acquire = acquire;
      work.release = release;
      for (int m = 0; m < micro_batches_; ++m) {
        if (recomputed.number[m] < 0) {
          graph_.work[block + m] = static_cast<std::int32_t>(graph_.works.size());
        }
      }
      graph_.works.push_back(work);
    };
    for (int m = 0; m < micro_batches_; ++m) {
      if (recomputed.number[m] >= 0) {
        graph_.micro_batch[lane.recompute + recomputed.number[m]] = m;
      }
    }
    if (recomputed.count < micro_batches_) {
      change(lane.forward, replica.memory.workspace, Bytes{0});
      change(lane.weight != kNone ? lane.weight : lane.backward, Bytes{0}, replica.memory.workspace);
    }
  }

  // Adds the legs between two devices as a chain of transfers, `count` of each; returns {first block, last block}, or
  // none where nothing moves.
  std::pair<TaskId, TaskId> add_transfer(TaskKind kind, int from_device, int to_device, int from_stage, int to_stage,
                                         double bytes, int latencies, int count) {
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
      if (blocks.first == kNone) {
        blocks.first = block;
      } else {
        runs_.push_back({blocks.second, block, count});
      }
      blocks.second = block;
    }
    return blocks;
  }

  // Sends between the replicas of two stages whose shares of the micro-batch overlap.
  void connect(const StageEdge& edge) {
    const int from_degree = cost_.stages[edge.from].tensor_parallel;
    const int to_degree = cost_.stages[edge.to].tensor_parallel;
    double from_start = 0;
    for (std::size_t i = 0; i < lanes_[edge.from].size(); i += from_degree) {
      const double from_end = from_start + cost_.stages[edge.from].replicas[i].share;
      double to_start = 0;
      for (std::size_t j = 0; j < lanes_[edge.to].size(); j += to_degree) {
        const double to_end = to_start + cost_.stages[edge.to].replicas[j].share;
        const double overlap = std::min(from_end, to_end) - std::max(from_start, to_start);
        if (overlap > 1e-12) {
          const double bytes = std::round(edge.bytes.value * std::min(overlap, 1.0));
          connect(edge, {lanes_[edge.from].data() + i, static_cast<std::size_t>(from_degree)},
                  {lanes_[edge.to].data() + j, static_cast<std::size_t>(to_degree)}, bytes);
        }
        to_start = to_end;
      }
      from_start = from_end;
    }
  }

  // Between two replicas: every rank receives from one, and all ranks of the receiver wait for what any of them
  // receives, since they compute together.
  void connect(const StageEdge& edge, std::span<const Lane> from, std::span<const Lane> to, double bytes) {
    const int from_degree = static_cast<int>(from.size());
    const int to_degree = static_cast<int>(to.size());
    for (int i = 0; i < from_degree; ++i) {
      for (int j = 0; j < to_degree; ++j) {
        if (from[i].device == to[j].device) {
          continue; // program order holds them
        }
        if (sends_to(i, from_degree, j)) {
          const auto activation = add_transfer(TaskKind::transfer, from[i].device, to[j].device, edge.from, edge.to,
                                               bytes, 1, micro_batches_);
          runs_.push_back({from[i].forward, activation.first, micro_batches_});
          for (const Lane& lane : to) {
            runs_.push_back({activation.second, lane.forward, micro_batches_});
          }
        }
        if (sends_to(j, to_degree, i)) {
          const auto gradient = add_transfer(TaskKind::transfer, to[j].device, from[i].device, edge.to, edge.from,
                                             bytes, 1, micro_batches_);
          runs_.push_back({to[j].backward, gradient.first, micro_batches_});
          for (const Lane& lane : from) {
            wait_for_gradient(edge.from, lane, gradient.second);
          }
        }
      }
    }
  }

  void wait_for_gradient(int stage, const Lane& lane, TaskId gradient) {
    if (lane.recompute == kNone || request_.early_recompute) {
      runs_.push_back({gradient, lane.backward, micro_batches_});
      return;
    }
    for (int m = 0; m < micro_batches_; ++m) {
      const int number = recomputed_[stage].number[m];
      runs_.push_back({gradient + m, number >= 0 ? lane.recompute + number : lane.backward + m, 1});
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

  // The schedule's rank of a device: its own where ranks are devices, that of its first stage where replicas share one.
  std::size_t rank_of(int device) const {
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

  TaskId task_of(const Lane& lane, const Action& action) const {
    switch (action.kind) {
    case TaskKind::forward:
      return lane.forward + action.micro_batch;
    case TaskKind::backward:
      return lane.backward + action.micro_batch;
    case TaskKind::weight:
      return lane.weight + action.micro_batch;
    default:
      return lane.recompute + recomputed_[action.stage].number[action.micro_batch];
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
      for (const Action& action : request_.schedule.orders[rank_of(device)]) {
        Lane* lane = lane_of[action.stage];
        const TaskId task = task_of(*lane, action);
        graph_.program.push_back(task);
        if (action.kind == TaskKind::backward || action.kind == TaskKind::weight) {
          lane->last = task;
        }
      }
      for (std::size_t s = 0; s < lane_of.size(); ++s) {
        if (Lane* lane = lane_of[s]; lane != nullptr) {
          lane->optimizer = add_optimizer(static_cast<int>(s), *lane);
          graph_.program.push_back(lane->optimizer);
        }
      }
    }
    graph_.program_begin.push_back(static_cast<std::int32_t>(graph_.program.size()));
  }

  TaskId add_optimizer(int stage, const Lane& lane) {
    Seconds seconds;
    for (const ReplicaCost& replica : cost_.stages[stage].replicas) {
      seconds = index_of_[replica.device] == lane.device ? replica.optimizer : seconds;
    }
    return add(
        {.kind = TaskKind::optimizer, .device = lane.device, .stage = stage, .to_stage = stage, .seconds = seconds}, 1);
  }

  TaskId add_join(TaskKind kind) {
    ++graph_.joins;
    return add({.kind = kind}, 1);
  }

  // Gradients complete -> all-reduce over replicas -> (barrier) -> optimiser.
  void finish_iteration() {
    const TaskId barrier = request_.barrier ? add_join(TaskKind::optimizer) : kNone;
    for (int s = 0; s < stages(); ++s) {
      const int degree = cost_.stages[s].tensor_parallel;
      const bool replicated = static_cast<int>(lanes_[s].size()) > degree;
      for (int rank = 0; rank < degree; ++rank) {
        const TaskId reduced = replicated ? add_all_reduce(s, rank) : kNone;
        for (std::size_t i = rank; i < lanes_[s].size(); i += degree) {
          const Lane& lane = lanes_[s][i];
          const TaskId ready = reduced != kNone ? reduced : lane.last;
          if (barrier != kNone) {
            runs_.push_back({ready, barrier, 1});
            runs_.push_back({barrier, lane.optimizer, 1});
          } else if (reduced != kNone) {
            runs_.push_back({reduced, lane.optimizer, 1});
          }
        }
      }
    }
  }

  // A ring over the replicas' shards of one rank: each sends 2 (r-1)/r of the gradients to its neighbour, all at once;
  // a join stands before and after.
  TaskId add_all_reduce(int stage, int rank) {
    std::vector<const Lane*> ring;
    for (std::size_t i = rank; i < lanes_[stage].size(); i += cost_.stages[stage].tensor_parallel) {
      ring.push_back(&lanes_[stage][i]);
    }
    const int ranks = static_cast<int>(ring.size());
    const TaskId begin = add_join(TaskKind::all_reduce);
    const TaskId end = add_join(TaskKind::all_reduce);
    const double bytes = std::round(ring_all_reduce_bytes(ranks, cost_.stages[stage].gradients).value);
    for (int i = 0; i < ranks; ++i) {
      runs_.push_back({ring[i]->last, begin, 1});
      const auto sent = add_transfer(TaskKind::all_reduce, ring[i]->device, ring[(i + 1) % ranks]->device, stage, stage,
                                     bytes, ring_all_reduce_steps(ranks), 1);
      runs_.push_back({begin, sent.first, 1});
      runs_.push_back({sent.second, end, 1});
    }
    return end;
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
      const TaskId load = add({.kind = TaskKind::load, .node = one.node, .seconds = one.decode}, micro_batches_);
      const TaskId read = add_copies(TaskKind::read, lane.device, one.disk, one.read);
      const TaskId copy = add_copies(TaskKind::copy, lane.device, one.copy, one.copied);
      if (read != kNone) {
        runs_.push_back({read, load, micro_batches_});
      }
      runs_.push_back({load, copy != kNone ? copy : lane.forward, micro_batches_});
      if (copy != kNone) {
        runs_.push_back({copy, lane.forward, micro_batches_});
      }
      std::vector<TaskId> taken; // forwards of the stage in program order
      for (const TaskId task : graph_.program_of(lane.device)) {
        if (task >= lane.forward && task < lane.forward + micro_batches_) {
          taken.push_back(task - lane.forward);
        }
      }
      const TaskId claim = read != kNone ? read : load;
      for (int n = 0; n < micro_batches_; ++n) {
        const auto tie = [&](TaskId from, int ahead, bool from_start) {
          const TaskId to = claim + taken[(n + ahead) % micro_batches_];
          ties_.emplace_back(from, Tie{to, (n + ahead) / micro_batches_, from_start});
        };
        tie(load + taken[n], loading.workers, false);
        tie(lane.forward + taken[n], loading.queue, true);
      }
    }
  }

  // One transfer per micro-batch for a device's loader; none where it takes no time.
  TaskId add_copies(TaskKind kind, int device, const Leg& leg, Bytes bytes) {
    if (bytes.value < 1 || std::isinf(leg.bandwidth.value)) {
      return kNone;
    }
    const auto index = static_cast<std::int32_t>(graph_.legs.size());
    graph_.legs.push_back(leg);
    return add({.kind = kind,
                .device = device,
                .leg = index,
                .seconds = leg.latency + bytes / leg.bandwidth,
                .latency = leg.latency,
                .bytes = bytes.value},
               micro_batches_);
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
    for (const Run& run : runs_) {
      for (int i = 0; i < run.count; ++i) {
        ++graph_.successor_begin[run.from + i + 1];
        ++graph_.waits[run.to + i];
      }
    }
    for (std::size_t task = 0; task < tasks; ++task) {
      graph_.successor_begin[task + 1] += graph_.successor_begin[task];
    }
    graph_.successors.resize(graph_.successor_begin[tasks]);
    for (const Run& run : runs_) { // fills each list from its front, moving its begin; undone below
      for (int i = 0; i < run.count; ++i) {
        graph_.successors[graph_.successor_begin[run.from + i]++] = run.to + i;
      }
    }
    for (std::size_t task = tasks; task > 0; --task) {
      graph_.successor_begin[task] = graph_.successor_begin[task - 1];
    }
    graph_.successor_begin[0] = 0;
  }

  const TaskGraphRequest& request_;
  const PlanCost& cost_;
  int micro_batches_;
  TaskGraph graph_;
  std::vector<int> index_of_;
  std::vector<Recomputed> recomputed_; // per stage
  std::vector<std::vector<Lane>> lanes_;
  std::vector<Run> runs_;
  std::vector<std::pair<TaskId, Tie>> ties_; // by the task they start from
};

} // namespace

std::vector<std::int32_t> TaskGraph::waits_over(int iterations) const {
  std::vector<std::int32_t> counts;
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

TaskGraph make_task_graph(const TaskGraphRequest& request) { return Builder(request).build(); }

} // namespace stagecraft
