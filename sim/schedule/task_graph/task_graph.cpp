// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/task_graph/task_graph.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/base/format/end_of_equals.hpp"
#include "sim/plan/stage_cost/communicators.hpp"
#include "sim/schedule/task_graph/add_edges.hpp"
#include "sim/schedule/task_graph/pass_steps.hpp"
#include "sim/schedule/task_graph/task_graph_builder.hpp"

namespace stagecraft {

TaskGraph TaskGraphBuilder::build() {
  list_devices();
  reserve();
  make_replicas();
  for (const StageEdge& edge : cost_.edges) {
    connect(edge);
  }
  write_programs();
  if (!fused_.empty()) {
    join_fused();
  }
  finish_iteration();
  if (has_units()) {
    share_units();
  }
  if (request_.offload.on()) {
    leave_to_hosts();
  }
  order_queues();
  insert_into_programs();
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
  set_ties(graph_, std::move(ties_));
  note_steps(graph_, exchanges_, request_.router.platform());
  if (request_.exchanges != ExchangeTasks::none && !exchanges_.passes.empty()) {
    return expand_exchanges(std::move(graph_), exchanges_, request_);
  }
  return std::move(graph_);
}

void TaskGraphBuilder::list_devices() {
  DeviceId largest = -1;
  for (const StageCost& stage : cost_.stages) {
    for (std::size_t i = 0; i < stage.size(); ++i) {
      largest = std::max(largest, stage.device(i));
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
  if (cost_.fold) {
    fold_devices(*cost_.fold);
  }
  graph_.reserve = request_.reserve;
  if (request_.reserve.communicator.value > 0) {
    for (const auto& [device, count] : communicators_of(cost_, request_.clips_gradients, request_.sharding.on())) {
      graph_.fixed_memory[index_of_[device]].communicators = request_.reserve.communicator * count; // alike in a class
    }
  }
}

// Gives devices that others stand for the numbers of these.
void TaskGraphBuilder::fold_devices(const Fold& fold) {
  FoldedGraph& folded = graph_.folded;
  folded.link = fold.link;
  folded.count.assign(graph_.devices.size(), 0);
  std::vector<char> known(index_of_.size(), 0);
  for (int s = 0; s < stages(); ++s) {
    const StageCost& stage = cost_.stages[s];
    for (std::size_t i = 0; i < stage.size(); ++i) {
      const DeviceId device = stage.device(i);
      if (std::exchange(known[device], 1) == 0) {
        index_of_[device] = index_of_[stage.replicas[simulated(s, i)].device];
        folded.devices.push_back(device);
        folded.simulated.push_back(index_of_[device]);
        ++folded.count[index_of_[device]];
      }
    }
  }
}

// The place, among the replicas of a stage that are simulated, of one of all its devices.
std::size_t TaskGraphBuilder::simulated(int stage, std::size_t device) const {
  const StageFold* const fold = fold_of(stage);
  return fold != nullptr ? fold->simulated(device, static_cast<std::size_t>(cost_.stages[stage].tensor_parallel))
                         : device;
}

// Those that stand for some devices of a stage, by their places among all that are simulated.
std::vector<std::size_t> TaskGraphBuilder::simulated_among(int stage, const std::vector<std::size_t>& members) const {
  return simulated_places(members, fold_of(stage), static_cast<std::size_t>(cost_.stages[stage].tensor_parallel));
}

// The leg of `count` transfers that are alike, where one of them is simulated.
Leg TaskGraphBuilder::folded(const Leg& leg, std::int32_t count) const {
  return cost_.fold ? cost_.fold->leg(leg, count) : leg;
}

// Reserves room for the blocks, so that little is copied while the graph grows.
void TaskGraphBuilder::reserve() {
  std::size_t replicas = 0;
  for (const StageCost& stage : cost_.stages) {
    replicas += stage.replicas.size();
  }
  std::size_t actions = 0;
  for (const auto& order : request_.schedule.orders) {
    actions += order.size();
    recomputes_ = recomputes_ || std::any_of(order.begin(), order.end(),
                                             [](const Action& action) { return action.kind == TaskKind::recompute; });
  }
  const std::size_t blocks = 4 * replicas + 2 * cost_.edges.size(); // enough for one replica pair and leg per edge
  graph_.work.reserve(blocks * micro_batches_ + 2 * replicas);
  graph_.micro_batch.reserve(blocks * micro_batches_ + 2 * replicas);
  graph_.program.reserve(actions + replicas);
  edge_runs_.reserve(2 * blocks);
}

// Adds `count` tasks of one work; their micro-batches are 0 … count-1.
TaskId TaskGraphBuilder::add(const Work& work, int count) {
  const auto index = static_cast<std::int32_t>(graph_.works.size());
  const auto first = static_cast<TaskId>(graph_.work.size());
  graph_.works.push_back(work);
  graph_.work.resize(first + count, index);
  graph_.micro_batch.insert(graph_.micro_batch.end(), numbers_.begin(), numbers_.begin() + count);
  return first;
}

// The place in TaskGraph::members of those who take part in a communication.
std::int32_t TaskGraphBuilder::add_members(std::vector<std::int32_t> members) {
  std::sort(members.begin(), members.end());
  const auto [known, is_new] =
      members_.try_emplace(std::move(members), static_cast<std::int32_t>(graph_.members.size()));
  if (is_new) {
    graph_.members.push_back(known->first);
  }
  return known->second;
}

void TaskGraphBuilder::write_edges() {
  const std::size_t tasks = graph_.work.size();
  graph_.waits.assign(tasks, 0);
  graph_.successor_begin.assign(tasks + 1, 0);
  std::int32_t* const begin = graph_.successor_begin.data();
  for (const EdgeRun& run : edge_runs_) { // one loop per array, so that each can count several at once
    std::for_each_n(begin + run.from + 1, run.count, [](std::int32_t& count) { ++count; });
    std::for_each_n(graph_.waits.data() + run.to, run.count, [](std::int32_t& count) { ++count; });
  }
  for (std::size_t task = 0; task < tasks; ++task) {
    begin[task + 1] += begin[task];
  }
  graph_.successors.resize(begin[tasks]);
  TaskId* const successors = graph_.successors.data();
  for (const auto [from, to, count] : edge_runs_) {   // fills each list from its front, moving its begin; undone below
    if (begin[from + count] - begin[from] == count) { // room for one each, so that their lists lie one after the other
      std::iota(successors + begin[from], successors + begin[from] + count, to);
    } else {
      for (std::int32_t i = 0; i < count; ++i) {
        successors[begin[from + i]] = to + i;
      }
    }
    std::for_each_n(begin + from, count, [](std::int32_t& filled) { ++filled; });
  }
  std::copy_backward(begin, begin + tasks, begin + tasks + 1);
  begin[0] = 0;
}

// Tasks of one work mostly follow one another.
std::vector<std::int32_t> TaskGraph::tasks_per_work() const {
  std::vector<std::int32_t> tasks(works.size(), 0);
  const std::int32_t* const last = work.data() + work.size();
  for (const std::int32_t* begin = work.data(); begin != last;) {
    const std::int32_t* const end = end_of_equals(begin, last);
    tasks[*begin] += static_cast<std::int32_t>(end - begin);
    begin = end;
  }
  return tasks;
}

TaskGraph make_task_graph(const TaskGraphRequest& request) { return TaskGraphBuilder(request).build(); }

} // namespace stagecraft
