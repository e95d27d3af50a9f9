// The list schedule: an order for plans whose shape no named schedule can run.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "sim/base/improves.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {
namespace {

// How urgent a ready task is: B before F, then the oldest micro-batch, then the rank of the stage. Packed into one
// word, so that comparing is fast and the stage can be read back.
using Urgency = std::uint64_t;

// A device finishes its task, or is woken because an input has arrived.
struct Event {
  double time;
  std::uint32_t order; // the order in which events were made, which decides ties
  std::int32_t who;    // the device, or its complement if it is woken: two words move faster than three

  bool wakes() const { return who < 0; }
  std::int32_t device() const { return who < 0 ? ~who : who; }
};

// A heap with the earliest event on top.
class EventQueue {
public:
  bool empty() const { return heap_.empty(); }
  double next_time() const { return heap_.front().time; }

  void push(double time, std::int32_t device, bool wakes) {
    heap_.push_back({time, made_++, wakes ? ~device : device});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }

private:
  static bool later(const Event& a, const Event& b) {
    return a.time > b.time || (a.time == b.time && a.order > b.order);
  }

  std::vector<Event> heap_;
  std::uint32_t made_ = 0;
};

class ListScheduler {
public:
  ListScheduler(Router& router, const Plan& plan, const PlanCost& cost, int micro_batches)
      : cost_(cost), micro_batches_(micro_batches), devices_(devices_of(plan)), replicas_(cost.stages.size()),
        sends_(cost.stages.size()), rank_(cost.stages.size()), ready_(devices_.size()), coming_(devices_.size()),
        busy_(devices_.size(), 0), running_(devices_.size()), wake_(devices_.size(), kInfinity) {
    schedule_.name = "list";
    schedule_.stages = static_cast<int>(cost.stages.size());
    schedule_.micro_batches = micro_batches;
    schedule_.orders.resize(devices_.size());
    for (std::size_t s = 0; s < replicas_.size(); ++s) {
      for (const ReplicaCost& replica : cost.stages[s].replicas) {
        const auto found = std::find(devices_.begin(), devices_.end(), replica.device);
        replicas_[s].push_back({static_cast<std::int32_t>(found - devices_.begin()), {}, {}});
      }
    }
    for (const StageEdge& edge : cost.edges) {
      add_sends(router, edge.from, edge.to, edge.bytes, TaskKind::forward);
      add_sends(router, edge.to, edge.from, edge.bytes, TaskKind::backward);
    }
    reserve();
    rank_stages();
    count_inputs();
  }

  Schedule run() {
    for (std::size_t device = 0; device < devices_.size(); ++device) {
      dispatch(static_cast<std::int32_t>(device), 0);
    }
    while (!events_.empty()) {
      const double now = events_.next_time();
      touched_.clear();
      while (!events_.empty() &&
             events_.next_time() <=
                 now) { // all events of one moment first, so that the choice does not depend on their order
        handle(events_.pop());
      }
      for (const std::int32_t device : touched_) {
        dispatch(device, now);
      }
    }
    return std::move(schedule_);
  }

private:
  struct Replica {
    std::int32_t device;
    std::vector<std::int32_t> waits_forward, waits_backward; // [micro-batch]
  };

  // A transfer from a replica to a replica of another stage, in the direction of `kind`.
  struct Send {
    TaskKind kind;
    std::int32_t from_replica, to_stage, to_replica;
    double delay;
  };

  // An input and when it arrives; or the task that a device is running and when it started.
  struct Timed {
    double time;
    std::int32_t replica;
    Action action;
  };

  void add_sends(Router& router, int from, int to, Bytes bytes, TaskKind kind) {
    const StageCost& sender = cost_.stages[from];
    const StageCost& receiver = cost_.stages[to];
    for (std::size_t i = 0; i < replicas_[from].size(); ++i) {
      for (std::size_t j = 0; j < replicas_[to].size(); ++j) {
        const double part = part_sent(sender, sender.rank(i), receiver, receiver.rank(j));
        if (part == 0) {
          continue;
        }
        const DeviceId a = devices_[replicas_[from][i].device];
        const DeviceId b = devices_[replicas_[to][j].device];
        const double delay = a == b ? 0 : router.cost(a, b).time(bytes * part).value;
        const std::size_t group = j - receiver.rank(j); // its ranks wait for what any of them receives
        for (int rank = 0; rank < receiver.tensor_parallel; ++rank) {
          const auto replica = static_cast<std::int32_t>(group) + rank;
          sends_[from].push_back({kind, static_cast<std::int32_t>(i), to, replica, delay});
        }
      }
    }
  }

  // Reserves memory: each replica adds a forward and a backward per micro-batch to its device's order, and all its
  // micro-batches may be ready at once.
  void reserve() {
    std::vector<std::size_t> stages(devices_.size(), 0);
    for (const auto& replicas : replicas_) {
      for (const Replica& replica : replicas) {
        ++stages[replica.device];
      }
    }
    for (std::size_t device = 0; device < devices_.size(); ++device) {
      schedule_.orders[device].reserve(2 * stages[device] * micro_batches_);
      ready_[device].reserve(stages[device] * micro_batches_);
      coming_[device].reserve(8);
    }
  }

  // Ranks stages by the work on the longest path to the last one. Forward prefers more, backward less.
  void rank_stages() {
    std::vector<double> path(replicas_.size(), 0.0);
    for (int s = schedule_.stages - 1; s >= 0; --s) {
      for (const Send& send : sends_[s]) {
        path[s] = send.kind == TaskKind::forward ? std::max(path[s], path[send.to_stage]) : path[s];
      }
      path[s] += cost_.stages[s].replicas.front().busy().value;
    }
    by_rank_.resize(replicas_.size());
    std::iota(by_rank_.begin(), by_rank_.end(), 0);
    std::stable_sort(by_rank_.begin(), by_rank_.end(), [&](int a, int b) { return path[a] > path[b]; });
    for (std::size_t i = 0; i < by_rank_.size(); ++i) {
      rank_[by_rank_[i]] = static_cast<std::int32_t>(i);
    }
  }

  void count_inputs() {
    std::vector<std::array<std::int32_t, 2>> inputs(replicas_.size(), {0, 1}); // B waits for its own F too
    for (const auto& sends : sends_) {
      for (const Send& send : sends) {
        inputs[send.to_stage][send.kind == TaskKind::forward ? 0 : 1] += send.to_replica == 0 ? 1 : 0;
      }
    }
    for (std::size_t s = 0; s < replicas_.size(); ++s) {
      for (Replica& replica : replicas_[s]) {
        replica.waits_forward.assign(micro_batches_, inputs[s][0]);
        replica.waits_backward.assign(micro_batches_, inputs[s][1]);
        for (int m = 0; m < micro_batches_ && inputs[s][0] == 0; ++m) {
          make_ready(replica.device, {TaskKind::forward, m, static_cast<std::int32_t>(s)});
        }
      }
    }
  }

  void make_ready(std::int32_t device, const Action& action) {
    constexpr int kRankBits = 31;
    const bool forward = action.kind == TaskKind::forward;
    const std::int32_t rank = forward ? rank_[action.stage] : schedule_.stages - 1 - rank_[action.stage];
    const Urgency urgency =
        (Urgency{forward} << 63) | (static_cast<Urgency>(action.micro_batch) << kRankBits) | static_cast<Urgency>(rank);
    ready_[device].push_back(urgency);
    std::push_heap(ready_[device].begin(), ready_[device].end(), std::greater<>());
  }

  Action take_ready(std::int32_t device) {
    std::pop_heap(ready_[device].begin(), ready_[device].end(), std::greater<>());
    const Urgency urgency = ready_[device].back();
    ready_[device].pop_back();
    const bool forward = (urgency >> 63) != 0;
    const auto rank = static_cast<std::int32_t>(urgency & 0x7fffffffU);
    const auto micro_batch = static_cast<std::int32_t>((urgency >> 31) & 0xffffffffU);
    return {forward ? TaskKind::forward : TaskKind::backward, micro_batch,
            by_rank_[forward ? rank : schedule_.stages - 1 - rank]};
  }

  void take_arrivals(std::int32_t device, double now) {
    auto& coming = coming_[device];
    for (std::size_t i = 0; i < coming.size();) {
      if (coming[i].time > now) {
        ++i;
        continue;
      }
      const Timed arrived = coming[i];
      coming[i] = coming.back();
      coming.pop_back();
      arrive(arrived.replica, arrived.action);
    }
  }

  // Gives an idle device its most urgent work. If it has none, wakes the device when its next input arrives.
  void dispatch(std::int32_t device, double now) {
    if (busy_[device] != 0) {
      return;
    }
    take_arrivals(device, now);
    if (!ready_[device].empty()) {
      begin(device, take_ready(device), now);
      return;
    }
    const auto first = std::min_element(coming_[device].begin(), coming_[device].end(),
                                        [](const Timed& a, const Timed& b) { return a.time < b.time; });
    if (first != coming_[device].end()) {
      wake(device, first->time);
    }
  }

  // One wake-up at a time is enough: the device checks again when it comes.
  void wake(std::int32_t device, double time) {
    if (time < wake_[device]) {
      wake_[device] = time;
      events_.push(time, device, true);
    }
  }

  void begin(std::int32_t device, const Action& action, double now) {
    std::int32_t replica = 0;
    while (replicas_[action.stage][replica].device != device) {
      ++replica;
    }
    const ReplicaCost& cost = cost_.stages[action.stage].replicas[replica];
    const Seconds time = action.kind == TaskKind::forward ? cost.forward : cost.recompute + cost.backward();
    schedule_.orders[device].push_back(action);
    busy_[device] = 1;
    running_[device] = {now, replica, action};
    events_.push(now + time.value, device, false);
  }

  void handle(const Event& event) {
    const std::int32_t here = event.device();
    touched_.push_back(here);
    if (event.wakes()) {
      wake_[here] = kInfinity;
      return;
    }
    busy_[here] = 0;
    const std::int32_t replica = running_[here].replica;
    const TaskKind kind = running_[here].action.kind;
    const std::int32_t m = running_[here].action.micro_batch;
    const std::int32_t stage = running_[here].action.stage;
    if (kind == TaskKind::forward) {
      arrive(replica, {TaskKind::backward, m, stage});
    }
    for (const Send& send : sends_[stage]) {
      if (send.kind != kind || send.from_replica != replica) {
        continue;
      }
      const std::int32_t device = replicas_[send.to_stage][send.to_replica].device;
      const double time = event.time + send.delay;
      coming_[device].push_back({time, send.to_replica, {kind, m, send.to_stage}});
      if (busy_[device] == 0) {
        wake(device, time);
      }
    }
  }

  void arrive(std::int32_t replica, const Action& action) {
    Replica& to = replicas_[action.stage][replica];
    auto& waits = action.kind == TaskKind::forward ? to.waits_forward : to.waits_backward;
    if (--waits[action.micro_batch] == 0) {
      make_ready(to.device, action);
    }
  }

  const PlanCost& cost_;
  int micro_batches_;
  std::vector<DeviceId> devices_;
  Schedule schedule_;
  std::vector<std::vector<Replica>> replicas_; // [stage]
  std::vector<std::vector<Send>> sends_;       // [stage they leave]
  std::vector<std::int32_t> rank_;             // [stage]
  std::vector<std::int32_t> by_rank_;          // stages in order of rank
  std::vector<std::vector<Urgency>> ready_;    // [device], heaps
  std::vector<std::vector<Timed>> coming_;     // [device]
  std::vector<char> busy_;
  std::vector<Timed> running_;        // [device]
  std::vector<double> wake_;          // [device]: time of the next wake-up
  std::vector<std::int32_t> touched_; // devices that may start work after the events of this moment
  EventQueue events_;
};

} // namespace

Schedule make_list_schedule(Router& router, const Plan& plan, const PlanCost& cost, int micro_batches) {
  return ListScheduler(router, plan, cost, micro_batches).run();
}

} // namespace stagecraft
