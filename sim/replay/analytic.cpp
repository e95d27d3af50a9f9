// The recurrence start = max(device free, last input arrived), evaluated in any order in which tasks become ready. What
// one device sends over one channel becomes ready in the order of its program, and so is evaluated in that order.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "sim/base/improves.hpp"
#include "sim/replay/speeds.hpp"

namespace stagecraft {
namespace {

class Recurrence {
public:
  Recurrence(const TaskGraph& graph, int iterations, std::span<const SpeedChange> speeds)
      : graph_(graph), work_(graph.work.data()), successor_begin_(graph.successor_begin.data()),
        successors_(graph.successors.data()), tasks_(graph.tasks()), has_ties_(!graph.ties.empty()),
        constant_(speeds.empty()), speeds_(graph, speeds), executed_(static_cast<std::size_t>(tasks_) * iterations) {
    timeline_.iterations = iterations;
    timeline_.start.assign(executed_, -kInfinity); // before a task starts: the latest arrival of its inputs so far
    timeline_.finish = graph.waits_over<double>(iterations); // before a task's inputs are there: how many it waits for
    start_ = timeline_.start.data();
    finish_ = timeline_.finish.data();
    kinds_.reserve(graph.works.size());
    for (const Work& work : graph.works) {
      kinds_.push_back({work.seconds.value, work.latency.value, work.computes() ? work.device : -1, work.channel});
    }
    drained_.assign(graph.channels, 0.0);
    devices_.reserve(graph.devices.size());
    for (std::size_t device = 0; device < graph.devices.size(); ++device) {
      const auto program = graph.program_of(device);
      const TaskId* const begin = program.data();
      devices_.push_back({begin, begin + program.size(), begin});
      heads_.push_back(static_cast<std::size_t>(program.front()));
    }
    woken_.resize(devices_.size());
  }

  Timeline run() {
    const bool plain = !has_ties_ && constant_;
    if (has_ties_) {
      start_loading();
    }
    for (std::size_t device = 0; device < devices_.size(); ++device) {
      woken_[awake_++] = static_cast<std::int32_t>(device);
      while (awake_ > 0) {
        plain ? advance_woken<true>() : advance_woken<false>();
        follow_ties();
      }
    }
    if (std::any_of(heads_.begin(), heads_.end(), [&](std::size_t head) { return head < executed_; })) {
      throw std::runtime_error("the replay stopped with tasks waiting for each other");
    }
    return std::move(timeline_);
  }

private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  // The fields of a work that the recurrence needs, packed for the cache.
  struct Kind {
    double seconds, latency;
    std::int32_t device;  // -1: a transfer or join
    std::int32_t channel; // -1: a transfer on its own, or no transfer
  };

  struct Device {
    const TaskId *begin, *end; // its program
    const TaskId* at;          // the task in the program that runs next
    std::size_t base = 0;      // iteration * tasks
    double free = 0;
  };

  struct Arrival {
    std::size_t base; // iteration * tasks
    TaskId task;
    double time;
  };

  // Starts tasks that wait for nothing: batches that fit into the empty queue.
  void start_loading() {
    for (std::size_t now = 0; now < executed_; ++now) {
      const auto task = static_cast<TaskId>(now % tasks_);
      if (finish_[now] == 0 && kinds_[work_[task]].device < 0) {
        ++finish_[now];
        tied_.push_back({now - task, task, 0});
      }
    }
  }

  // Kept out of the loops, which rarely need it, so that they keep their own variables in registers.
  [[gnu::noinline]] void tie(std::size_t base, TaskId task, double start, double finish) {
    for (const bool from_start : {true, false}) {
      for (const Tie& tie : graph_.ties_of(task)) {
        const std::size_t later = base + static_cast<std::size_t>(tie.iterations) * tasks_;
        if (tie.from_start == from_start && later < executed_) {
          tied_.push_back({later, tie.to, from_start ? start : finish});
        }
      }
    }
  }

  [[gnu::noinline]] double at_speeds(std::int32_t device, double start, double seconds) const {
    return speeds_.finish(device, start, seconds);
  }

  void follow_ties() {
    while (!tied_.empty()) {
      const Arrival next = tied_.back();
      tied_.pop_back();
      arrive<false>(next.base, next.task, next.time);
      release_pending(next.base);
    }
  }

  [[gnu::noinline]] void leave_pending(TaskId task) { pending_.push_back(task); }

  // Runs the programs of devices as far as inputs allow, until no device is awake. `plain`: without ties and changes of
  // speed.
  template <bool plain> void advance_woken() {
    while (awake_ > 0) {
      const std::int32_t number = woken_[--awake_];
      Device& device = devices_[number];
      const TaskId* at = device.at;
      std::size_t base = device.base;
      double free = device.free;
      std::size_t now = std::exchange(heads_[number], kNone); // nothing needs to wake it meanwhile
      while (base != executed_ && finish_[now] <= 0) {        // all inputs are there
        const TaskId task = *at;
        const std::size_t iteration = base;
        const double seconds = kinds_[work_[task]].seconds;
        const double start = std::max(start_[now], free);
        free = plain || constant_ ? start + seconds : at_speeds(number, start, seconds);
        start_[now] = start;
        finish_[now] = free;
        if (++at == device.end) {
          at = device.begin;
          base += tasks_;
        }
        now = base + *at;
        if (!plain && has_ties_) {
          tie(iteration, task, start, free);
        }
        pass_on<plain>(iteration, task, free);
        if (!pending_.empty()) {
          release_pending(iteration);
        }
      }
      device.at = at;
      device.base = base;
      device.free = free;
      heads_[number] = now;
    }
  }

  // When a task finishes, its output arrives at all successors; transfers and joins among them finish in the same step.
  template <bool plain> void pass_on(std::size_t base, TaskId task, double finish) {
    const TaskId* const end = successors_ + successor_begin_[task + 1];
    for (const TaskId* next = successors_ + successor_begin_[task]; next != end; ++next) {
      arrive<plain>(base, *next, finish);
    }
  }

  [[gnu::noinline]] void release_pending(std::size_t base) {
    for (std::size_t next = 0; next < pending_.size();) { // in the order in which they finished; more may follow
      const TaskId task = pending_[next++];
      pass_on<false>(base, task, finish_[base + task]);
    }
    pending_.clear();
  }

  // An input of `task` arrives. Follows a chain of transfers to its end; a transfer with several successors is left
  // pending.
  template <bool plain> void arrive(std::size_t base, TaskId task, double time) {
    for (;;) {
      const std::size_t now = base + task;
      double arrival = std::max(start_[now], time);
      const double missing = finish_[now] - 1;
      const Kind& kind = kinds_[work_[task]];
      if (missing > 0 || kind.device >= 0) {
        start_[now] = arrival;
        finish_[now] = missing;
        if (missing <= 0 && heads_[kind.device] == now) { // the input that its device was waiting for
          woken_[awake_++] = kind.device;
        }
        return;
      }
      if (kind.channel >= 0) { // its bytes flow after its latency, and after those before it have left the channel
        double& drained = drained_[kind.channel];
        arrival = std::max(arrival, drained - kind.latency);
        drained = arrival + kind.seconds;
      }
      time = arrival + kind.seconds;
      start_[now] = arrival;
      finish_[now] = time;
      if (!plain && has_ties_) {
        tie(base, task, arrival, time);
      }
      const TaskId* const next = successors_ + successor_begin_[task];
      if (next + 1 != successors_ + successor_begin_[task + 1]) {
        leave_pending(task);
        return;
      }
      task = *next;
    }
  }

  // Pointers into graph_ and timeline_, for the loops above.
  const TaskGraph& graph_;
  const std::int32_t *work_, *successor_begin_;
  const TaskId* successors_;
  double *start_ = nullptr, *finish_ = nullptr;

  int tasks_;
  bool has_ties_, constant_;
  Speeds speeds_;
  Timeline timeline_;
  std::size_t executed_;
  std::vector<Kind> kinds_; // [work]
  std::vector<Device> devices_;
  std::vector<std::size_t> heads_; // [device]: iteration * tasks + task of its next task; at the end an iteration more
  std::vector<double> drained_;    // [channel]: when the last byte on it arrives, in seconds
  std::vector<TaskId> pending_;
  std::vector<std::int32_t> woken_; // the first `awake_` of them are devices that wait for nothing any more
  std::size_t awake_ = 0;
  std::vector<Arrival> tied_; // arrivals along ties, to be followed
};

} // namespace

std::vector<Timeline> replay_analytic(std::span<const ReplayRequest> requests) {
  std::vector<Timeline> timelines;
  for (const ReplayRequest& request : requests) {
    timelines.push_back(Recurrence(request.graph, request.iterations, request.speeds).run());
  }
  return timelines;
}

} // namespace stagecraft
