// A graph of which SimGrid runs every computation and every transfer. Only the module includes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simgrid/kernel/Timer.hpp>

#include <cstdint>
#include <utility>

#include "sim/replay/simgrid/network.hpp"

namespace stagecraft {

// Dependencies and program order are ours. Computations are Execs on `hosts`, one per device of the graph; latencies
// are timers.
class FullPhase {
public:
  /// `number`: which of the network's requests it is.
  FullPhase(const sg::Engine& engine, const Network& network, const ReplayRequest& request, std::size_t number)
      : engine_(engine), graph_(request.graph), iterations_(request.iterations), computing_(request.computing),
        hosts_(network.computers(number)), ends_(network.ends(number)), begin_(clock_now()) {
    constexpr double kWholeBytes = 1;
    network.adopt(request.platform, graph_, kWholeBytes);
    const std::vector<std::int32_t> waits = graph_.waits_over<std::int32_t>(iterations_);
    waiting_.reserve(waits.size());
    for (Executed executed = 0; executed < waits.size(); ++executed) {
      const TaskId task = task_of(executed);
      const auto next = graph_.successors_of(task);
      waiting_.push_back({waits[executed], graph_.work[task], next.size() == 1 ? next.front() : kSeveral});
    }
    timeline_.iterations = iterations_;
    timeline_.start.resize(waits.size());
    timeline_.finish.resize(waits.size());
    position_.assign(graph_.devices.size(), 0);
    busy_.assign(graph_.devices.size(), 0);
    send_queues_.resize(graph_.channels);
  }

  /// Runs the graph to its end; false if tasks remain that wait for each other.
  bool run() {
    start();
    engine_.run();
    return complete();
  }

  Timeline take() { return std::move(timeline_); }

  void finished(sg::Activity const& activity) {
    const auto slot = reinterpret_cast<std::uintptr_t>(activity.get_data<void>());
    if (slot == 0) {
      return;
    }
    last_ = std::move(live_[slot - 1]); // the last reference must outlive the callback
    free_slots_.push_back(slot - 1);
    const Executed executed = executed_of_slot_[slot - 1];
    const Work& work = work_of(executed);
    work.computes() ? computed(executed, work.device) : arrived(executed, work);
  }

private:
  using Executed = std::size_t; // iteration * tasks + task

  // The transfers sent over one channel, in the order in which they became ready. The first is flowing or waiting for
  // its latency.
  struct SendQueue {
    std::vector<Executed> queue;
    std::size_t first = 0;
  };

  // What is needed of a task when an input arrives and when it ends, in one place for the cache.
  struct Waiting {
    std::int32_t inputs; // that have not arrived
    std::int32_t work;
    TaskId next; // its successor, or kSeveral: any other number than one
  };
  static constexpr TaskId kSeveral = -1;

  void start() {
    for (Executed executed = 0; executed < waiting_.size() && !graph_.ties.empty(); ++executed) {
      if (waiting_[executed].inputs == 0 && !work_of(executed).computes()) { // the first batches
        after(Seconds{0}, [this, executed] { begin(executed); });
      }
    }
    for (std::size_t device = 0; device < graph_.devices.size(); ++device) {
      dispatch(device);
    }
  }

  bool complete() const {
    for (std::size_t device = 0; device < graph_.devices.size(); ++device) {
      if (position_[device] < static_cast<long>(graph_.program_of(device).size()) * iterations_) {
        return false;
      }
    }
    return true;
  }

  TaskId task_of(Executed executed) const {
    return static_cast<TaskId>(iterations_ == 1 ? executed : executed % graph_.tasks()); // divisions take long
  }

  const Work& work_of(Executed executed) const { return graph_.works[waiting_[executed].work]; }
  double& start_of(Executed executed) { return timeline_.start[executed]; }
  double& finish_of(Executed executed) { return timeline_.finish[executed]; }

  double now() const { return clock_now() - begin_; }

  // Starts the device's next computation if its inputs are there.
  void dispatch(std::size_t device) {
    const auto program = graph_.program_of(device);
    const long length = static_cast<long>(program.size());
    const long at = position_[device];
    if (busy_[device] != 0 || at == length * iterations_) {
      return;
    }
    const Executed executed = static_cast<Executed>(at / length) * graph_.tasks() + program[at % length];
    if (waiting_[executed].inputs > 0) {
      return;
    }
    busy_[device] = 1;
    ++position_[device];
    start_of(executed) = now();
    follow_ties(executed, true);
    const Seconds seconds = computing_.empty() ? work_of(executed).seconds : Seconds{computing_[executed]};
    if (seconds.value > 0) {
      compute(executed, *hosts_[device], seconds);
    } else {
      after(seconds, [this, executed, device] { computed(executed, device); });
    }
  }

  void computed(Executed executed, std::size_t device) {
    busy_[device] = 0;
    finish(executed);
    dispatch(device);
  }

  // A host of speed 1 does the work of a second in a second.
  void compute(Executed executed, sg::Host& host, Seconds seconds) {
    const sg::ExecPtr exec = sg::Exec::init();
    exec->set_flops_amount(seconds.value);
    const std::size_t slot = take_slot(executed);
    exec->set_data(reinterpret_cast<void*>(slot + 1));
    live_[slot] = exec;
    exec->set_host(&host);
#if SIMGRID_VERSION >= 33600
    exec->detach();
#else
    exec->vetoable_start();
#endif
  }

  template <class Then> static void after(Seconds delay, Then then) {
    simgrid::kernel::timer::Timer::set(clock_now() + delay.value, std::move(then));
  }

  void finish(Executed executed) {
    finish_of(executed) = now();
    const TaskId task = task_of(executed);
    const Executed base = executed - task;
    if (const TaskId next = waiting_[executed].next; next != kSeveral) {
      arrive(base + next);
    } else {
      for (const TaskId each : graph_.successors_of(task)) {
        arrive(base + each);
      }
    }
    follow_ties(executed, false);
  }

  void arrive(Executed executed) {
    if (--waiting_[executed].inputs == 0) {
      begin(executed);
    }
  }

  // Starts a task whose inputs are there; a computation only when its device gets to it.
  void begin(Executed executed) {
    const Work& work = work_of(executed);
    if (work.computes()) {
      dispatch(work.device);
      return;
    }
    start_of(executed) = now();
    follow_ties(executed, true);
    if (work.transfers()) {
      transfer(executed, work);
    } else if (work.loads()) {
      after(work.seconds, [this, executed] { finish(executed); });
    } else {
      finish(executed);
    }
  }

  void follow_ties(Executed executed, bool from_start) {
    if (graph_.ties.empty()) {
      return;
    }
    for (const Tie& tie : graph_.ties_of(task_of(executed))) {
      const Executed later = executed - task_of(executed) + static_cast<Executed>(tie.iterations) * graph_.tasks();
      if (tie.from_start == from_start && later < waiting_.size()) {
        arrive(later + tie.to);
      }
    }
  }

  // The latency of a transfer passes while those before it on its channel still flow.
  void transfer(Executed executed, const Work& work) {
    if (work.channel >= 0) {
      SendQueue& sends = send_queues_[work.channel];
      sends.queue.push_back(executed);
      if (sends.queue.size() - sends.first > 1) {
        return;
      }
    }
    if (work.latency.value > 0) {
      after(work.latency, [this, executed, &work] { send(executed, work); });
    } else {
      send(executed, work);
    }
  }

  void send(Executed executed, const Work& work) {
    if (!flow(executed, work)) {
      arrived(executed, work);
    }
  }

  // The next transfer on the channel flows now if it has been ready for its latency.
  void arrived(Executed executed, const Work& work) {
    finish(executed);
    if (work.channel < 0) {
      return;
    }
    SendQueue& sends = send_queues_[work.channel];
    while (++sends.first < sends.queue.size()) {
      const Executed next = sends.queue[sends.first];
      const Work& waiting = work_of(next);
      const double entered = now() - waiting.latency.value;
      if (entered < start_of(next)) {
        after(Seconds{start_of(next) - entered}, [this, next, &waiting] { send(next, waiting); });
        return;
      }
      start_of(next) = entered;
      if (flow(next, waiting)) {
        return;
      }
      finish(next);
    }
    sends.queue.clear();
    sends.first = 0;
  }

  std::size_t take_slot(Executed executed) {
    std::size_t slot = live_.size();
    if (free_slots_.empty()) {
      live_.emplace_back();
      executed_of_slot_.emplace_back();
    } else {
      slot = free_slots_.back();
      free_slots_.pop_back();
    }
    executed_of_slot_[slot] = executed;
    return slot;
  }

  // Starts the flow of a transfer; false if it takes no time.
  bool flow(Executed executed, const Work& work) {
    if (work.bytes < 1 || ends_[work.leg].sender == nullptr) { // SimGrid never ends a Comm of no bytes
      return false;
    }
    const std::size_t slot = take_slot(executed);
    const sg::CommPtr comm = sg::Comm::sendto_init();
    comm->set_payload_size(static_cast<std::uint64_t>(work.bytes));
    comm->set_data(reinterpret_cast<void*>(slot + 1));
    live_[slot] = comm;
    comm->set_source(ends_[work.leg].sender);
    comm->set_destination(ends_[work.leg].sink); // starts it
    return true;
  }

  const sg::Engine& engine_;
  const TaskGraph& graph_;
  int iterations_;
  std::span<const double> computing_;      // [executed]: seconds of computations; empty: those of works
  std::vector<sg::Host*> hosts_;           // [device]
  const std::vector<Network::Ends>& ends_; // [leg]
  double begin_;
  Timeline timeline_;
  std::vector<Waiting> waiting_; // [executed]
  std::vector<long> position_;
  std::vector<char> busy_;
  std::vector<SendQueue> send_queues_;
  std::vector<sg::ActivityPtr> live_;
  std::vector<Executed> executed_of_slot_;
  std::vector<std::size_t> free_slots_;
  sg::ActivityPtr last_;
};

} // namespace stagecraft
