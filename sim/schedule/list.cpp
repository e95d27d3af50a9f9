// The list schedule: an order for plans whose shape no named schedule knows.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <queue>
#include <set>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {
namespace {

struct Event {
  double time;
  int device;
  Action action;
  bool arrives; // an input arrived; otherwise the device finished the action
  bool operator>(const Event& other) const {
    return std::tuple(time, arrives, device, action.micro_batch, action.stage) >
           std::tuple(other.time, other.arrives, other.device, other.action.micro_batch, other.action.stage);
  }
};

class ListScheduler {
public:
  ListScheduler(const Problem& problem, const Plan& plan, const PlanCost& cost, int micro_batches)
      : problem_(problem), cost_(cost), micro_batches_(micro_batches), devices_(devices_of(plan)) {
    const int stages = static_cast<int>(cost.stages.size());
    schedule_.name = "list";
    schedule_.stages = stages;
    schedule_.micro_batches = micro_batches;
    schedule_.orders.resize(devices_.size());
    lanes_.resize(stages);
    for (int s = 0; s < stages; ++s) {
      for (const ReplicaCost& replica : cost.stages[s].replicas) {
        const auto found = std::find(devices_.begin(), devices_.end(), replica.device);
        lanes_[s].push_back(static_cast<int>(found - devices_.begin()));
      }
    }
    next_.resize(stages);
    previous_.resize(stages);
    for (const StageEdge& edge : cost.edges) {
      next_[edge.from].push_back(edge);
      previous_[edge.to].push_back(edge);
    }
    rank_.assign(stages, 0.0);
    for (int s = stages - 1; s >= 0; --s) {
      for (const StageEdge& edge : next_[s]) {
        rank_[s] = std::max(rank_[s], rank_[edge.to]);
      }
      rank_[s] += cost.stages[s].replicas.front().busy().value;
    }
    const std::size_t pairs = static_cast<std::size_t>(stages) * micro_batches;
    waits_forward_.resize(pairs);
    waits_backward_.resize(pairs);
    ready_.resize(devices_.size());
    busy_.assign(devices_.size(), 0);
  }

  Schedule run() {
    for (int s = 0; s < schedule_.stages; ++s) {
      for (int m = 0; m < micro_batches_; ++m) {
        waits_forward_[at(s, m)].assign(lanes_[s].size(), senders(s, TaskKind::forward));
        waits_backward_[at(s, m)].assign(lanes_[s].size(), senders(s, TaskKind::backward) + 1);
        for (const int device : lanes_[s]) {
          if (previous_[s].empty()) {
            make_ready(device, {TaskKind::forward, m, s});
          }
        }
      }
    }
    for (std::size_t device = 0; device < devices_.size(); ++device) {
      dispatch(static_cast<int>(device), 0);
    }
    while (!events_.empty()) {
      const double now = events_.top().time;
      std::set<int> touched;
      while (!events_.empty() && events_.top().time <= now) {
        const Event event = events_.top();
        events_.pop();
        handle(event);
        touched.insert(event.device);
      }
      for (const int device : touched) {
        dispatch(device, now);
      }
    }
    return std::move(schedule_);
  }

private:
  // B before F, oldest micro-batch, longest way to go, lowest stage.
  struct Priority {
    int kind, micro_batch;
    double rank;
    int stage;
    bool operator<(const Priority& other) const {
      return std::tuple(kind, micro_batch, -rank, stage) <
             std::tuple(other.kind, other.micro_batch, -other.rank, other.stage);
    }
  };

  std::size_t at(int stage, int m) const { return static_cast<std::size_t>(stage) * micro_batches_ + m; }

  // Lanes that send to a stage: those of its predecessors forward, of its successors backward.
  int senders(int stage, TaskKind kind) const {
    int count = 0;
    for (const StageEdge& edge : kind == TaskKind::forward ? previous_[stage] : next_[stage]) {
      count += static_cast<int>(lanes_[kind == TaskKind::forward ? edge.from : edge.to].size());
    }
    return count;
  }

  void make_ready(int device, const Action& action) {
    const double rank = action.kind == TaskKind::forward ? rank_[action.stage] : -rank_[action.stage];
    ready_[device].insert({action.kind == TaskKind::forward ? 1 : 0, action.micro_batch, rank, action.stage});
  }

  const ReplicaCost& replica_on(int stage, int device) const {
    const auto found = std::find(lanes_[stage].begin(), lanes_[stage].end(), device);
    return cost_.stages[stage].replicas[found - lanes_[stage].begin()];
  }

  void dispatch(int device, double now) {
    if (busy_[device] != 0 || ready_[device].empty()) {
      return;
    }
    const Priority first = *ready_[device].begin();
    ready_[device].erase(ready_[device].begin());
    const Action action{first.kind == 1 ? TaskKind::forward : TaskKind::backward, first.micro_batch, first.stage};
    const ReplicaCost& replica = replica_on(action.stage, device);
    const Seconds time = action.kind == TaskKind::forward
                             ? replica.forward
                             : replica.recompute + replica.backward_input + replica.backward_weight;
    schedule_.orders[device].push_back(action);
    busy_[device] = 1;
    events_.push({now + time.value, device, action, false});
  }

  void handle(const Event& event) {
    if (event.arrives) {
      arrive(event.device, event.action);
      return;
    }
    busy_[event.device] = 0;
    const auto [kind, m, stage] = std::tuple(event.action.kind, event.action.micro_batch, event.action.stage);
    if (kind == TaskKind::forward) {
      arrive(event.device, {TaskKind::backward, m, stage});
    }
    const bool forward = kind == TaskKind::forward;
    for (const StageEdge& edge : forward ? next_[stage] : previous_[stage]) {
      const int target = forward ? edge.to : edge.from;
      for (const int device : lanes_[target]) {
        const Seconds delay = device == event.device
                                  ? Seconds{0}
                                  : problem_.path(devices_[event.device], devices_[device]).time(edge.bytes);
        events_.push({event.time + delay.value, device, {kind, m, target}, true});
      }
    }
  }

  void arrive(int device, const Action& action) {
    auto& waits = action.kind == TaskKind::forward ? waits_forward_ : waits_backward_;
    const auto lane = std::find(lanes_[action.stage].begin(), lanes_[action.stage].end(), device);
    if (--waits[at(action.stage, action.micro_batch)][lane - lanes_[action.stage].begin()] == 0) {
      make_ready(device, action);
    }
  }

  const Problem& problem_;
  const PlanCost& cost_;
  int micro_batches_;
  std::vector<DeviceId> devices_;
  Schedule schedule_;
  std::vector<std::vector<int>> lanes_; // [stage]: devices, as indices into devices_
  std::vector<std::vector<StageEdge>> next_, previous_;
  std::vector<double> rank_;
  std::vector<std::vector<int>> waits_forward_, waits_backward_; // [stage, micro-batch][lane]
  std::vector<std::set<Priority>> ready_;
  std::vector<char> busy_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

} // namespace

Schedule make_list_schedule(const Problem& problem, const Plan& plan, const PlanCost& cost, int micro_batches) {
  return ListScheduler(problem, plan, cost, micro_batches).run();
}

} // namespace stagecraft
