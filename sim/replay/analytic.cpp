// The recurrence: start = max(device free, last input arrived), evaluated in whatever order readiness allows; what one
// device sends one way becomes ready in the order of its program, and so is evaluated in that order.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <stdexcept>

#include "sim/replay/speeds.hpp"

namespace stagecraft {
namespace {

class Recurrence {
public:
  Recurrence(const TaskGraph& graph, int iterations, std::span<const SpeedChange> speeds)
      : graph_(graph), tasks_(graph.tasks()), iterations_(iterations), has_ties_(!graph.ties.empty()),
        speeds_(graph, speeds) {
    const std::size_t executed = static_cast<std::size_t>(tasks_) * iterations;
    timeline_.iterations = iterations;
    timeline_.start.assign(executed, 0.0); // until a task starts, the latest arrival of its inputs
    timeline_.finish.resize(executed);
    waits_ = graph.waits_over(iterations);
    for (const Work& work : graph.works) {
      kinds_.push_back({work.seconds.value, work.latency.value, work.computes() ? work.device : -1, work.way});
    }
    drained_.assign(graph.ways, 0.0);
    for (std::size_t device = 0; device < graph.devices.size(); ++device) {
      devices_.push_back({.program = graph.program_of(device)});
      devices_.back().head = devices_.back().program.front();
    }
  }

  Timeline run() {
    if (!graph_.ties.empty()) {
      start_loading();
    }
    for (Device& device : devices_) {
      advance(device);
      while (!woken_.empty() || !tied_.empty()) {
        follow_ties();
        while (!woken_.empty()) {
          const std::int32_t next = woken_.back();
          woken_.pop_back();
          advance(devices_[next]);
        }
      }
    }
    for (const Device& device : devices_) {
      if (device.iteration < iterations_) {
        throw std::runtime_error("the replay stopped with tasks waiting for each other");
      }
    }
    return std::move(timeline_);
  }

private:
  // What the recurrence needs of a work, close together.
  struct Kind {
    double seconds, latency;
    std::int32_t device; // -1: a transfer or join
    std::int32_t way;    // -1: a transfer on its own, or none
  };

  struct Device {
    std::span<const TaskId> program;
    std::size_t base = 0; // iteration * tasks
    std::size_t head = 0; // base + task: what runs next
    std::int32_t iteration = 0;
    std::int32_t position = 0; // of the head in the program
    double free = 0;
  };

  struct Arrival {
    std::size_t base; // iteration * tasks
    TaskId task;
    double time;
  };

  // What waits for nothing, batches that fit into the empty queue, begins at once.
  void start_loading() {
    for (std::size_t now = 0; now < waits_.size(); ++now) {
      const auto task = static_cast<TaskId>(now % tasks_);
      if (waits_[now] == 0 && kinds_[graph_.work[task]].device < 0) {
        ++waits_[now];
        tied_.push_back({now - task, task, 0});
      }
    }
  }

  void tie(std::size_t base, std::size_t task, double time, bool from_start) {
    for (const Tie& tie : graph_.ties_of(static_cast<TaskId>(task))) {
      const std::size_t later = base + static_cast<std::size_t>(tie.iterations) * tasks_;
      if (tie.from_start == from_start && later < waits_.size()) {
        tied_.push_back({later, tie.to, time});
      }
    }
  }

  void follow_ties() {
    while (!tied_.empty()) {
      const Arrival next = tied_.back();
      tied_.pop_back();
      arrive(next.base, next.task, next.time);
      release_pending(next.base);
    }
  }

  // Runs the device's program as far as inputs allow.
  void advance(Device& device) {
    while (device.iteration < iterations_ && waits_[device.head] == 0) {
      const std::size_t now = device.head;
      const std::size_t base = device.base;
      const double start = std::max(timeline_.start[now], device.free);
      const Kind& kind = kinds_[graph_.work[now - base]];
      device.free = speeds_.constant() ? start + kind.seconds : speeds_.finish(kind.device, start, kind.seconds);
      timeline_.start[now] = start;
      timeline_.finish[now] = device.free;
      if (++device.position == static_cast<std::int32_t>(device.program.size())) {
        device.position = 0;
        ++device.iteration;
        device.base += tasks_;
      }
      device.head = device.base + device.program[device.position];
      if (has_ties_) {
        tie(base, now - base, start, true);
        tie(base, now - base, device.free, false);
      }
      release(base, now - base, device.free);
    }
  }

  // Passes a finish on to all successors; transfers and joins among them finish at once.
  void release(std::size_t base, std::size_t task, double finish) {
    for (const TaskId next : graph_.successors_of(static_cast<TaskId>(task))) {
      arrive(base, next, finish);
    }
    release_pending(base);
  }

  void release_pending(std::size_t base) {
    for (std::size_t at = 0; at < pending_.size(); ++at) { // first come, first sent
      const TaskId task = pending_[at];
      for (const TaskId next : graph_.successors_of(task)) {
        arrive(base, next, timeline_.finish[base + task]);
      }
    }
    pending_.clear();
  }

  // An input of `task` arrives. Follows a chain of transfers to its end; one with several successors is left pending.
  void arrive(std::size_t base, TaskId task, double time) {
    for (;;) {
      double& arrival = timeline_.start[base + task];
      arrival = std::max(arrival, time);
      if (--waits_[base + task] > 0) {
        return;
      }
      const Kind& kind = kinds_[graph_.work[task]];
      if (kind.device >= 0) {
        if (devices_[kind.device].head == base + task && devices_[kind.device].iteration < iterations_) {
          woken_.push_back(kind.device);
        }
        return;
      }
      if (kind.way >= 0) { // its bytes flow when its latency has passed and those before it have left the way
        double& drained = drained_[kind.way];
        arrival = std::max(arrival, drained - kind.latency);
        drained = arrival + kind.seconds;
      }
      time = arrival + kind.seconds;
      timeline_.finish[base + task] = time;
      if (has_ties_) {
        tie(base, task, arrival, true);
        tie(base, task, time, false);
      }
      const auto next = graph_.successors_of(task);
      if (next.size() != 1) {
        pending_.push_back(task);
        return;
      }
      task = next.front();
    }
  }

  const TaskGraph& graph_;
  int tasks_, iterations_;
  bool has_ties_;
  Speeds speeds_;
  Timeline timeline_;
  std::vector<std::int32_t> waits_;
  std::vector<Kind> kinds_; // [work]
  std::vector<Device> devices_;
  std::vector<double> drained_; // [way]: when the last byte on it arrives
  std::vector<TaskId> pending_;
  std::vector<std::int32_t> woken_;
  std::vector<Arrival> tied_; // along ties, not followed yet
};

} // namespace

std::vector<Timeline> replay_analytic(const Platform& /*platform*/, std::span<const ReplayRequest> requests) {
  std::vector<Timeline> timelines;
  for (const ReplayRequest& request : requests) {
    timelines.push_back(Recurrence(*request.graph, request.iterations, request.speeds).run());
  }
  return timelines;
}

} // namespace stagecraft
