// The recurrence start = max(device free, last input arrived), evaluated in any order in which tasks become ready. What
// one device sends over one channel becomes ready in the order of its program, and so is evaluated in that order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "sim/base/improves.hpp"
#include "sim/replay/speeds.hpp"

namespace stagecraft {

/// For a recurrence in which every transfer has its links for itself.
struct NoSharedFlows {
  static constexpr bool kShares = false;
};

/// The times of a graph's tasks. Runs each device's program as far ahead as its inputs allow, whatever the others have
/// done. Transfers that may share a link (`Flows`, as SharedFlows) leave the recurrence when they are ready; it goes on
/// behind them when it is told that they have arrived.
template <class Flows = NoSharedFlows> class Recurrence {
public:
  /// `origin`: when the first iteration starts. Where it is a power of two far beyond the times of the graph, sums do
  /// not depend on their order, as all times in its octave are rounded alike.
  Recurrence(const ReplayRequest& request, Flows* flows = nullptr, double origin = 0)
      : graph_(request.graph), work_(graph_.work.data()), successor_begin_(graph_.successor_begin.data()),
        successors_(graph_.successors.data()), tasks_(graph_.tasks()), has_ties_(!graph_.ties.empty()),
        constant_(request.speeds.empty() && request.computing.empty()), speeds_(graph_, request.speeds),
        computing_(request.computing.data()), flows_(flows), origin_(origin),
        executed_(static_cast<std::size_t>(tasks_) * request.iterations) {
    timeline_.iterations = request.iterations;
    timeline_.start.assign(executed_, -kInfinity); // before a task starts: the latest arrival of its inputs so far
    timeline_.finish = graph_.template waits_over<double>(request.iterations); // before its inputs are there: how many
    start_ = timeline_.start.data();
    finish_ = timeline_.finish.data();
    list_kinds();
    drained_.assign(graph_.channels, 0.0);
    const TaskGraph& graph = graph_;
    devices_.reserve(graph.devices.size());
    for (std::size_t device = 0; device < graph.devices.size(); ++device) {
      const auto program = graph.program_of(device);
      const TaskId* const begin = program.data();
      devices_.push_back({begin, begin + program.size(), begin, 0, origin_});
      heads_.push_back(static_cast<std::size_t>(program.front()));
    }
    woken_.resize(devices_.size());
  }

  /// Runs all that does not wait for flows that may share links.
  void start() {
    if (has_ties_) {
      start_loading();
    }
    for (std::size_t device = 0; device < devices_.size(); ++device) {
      woken_[awake_++] = static_cast<std::int32_t>(device);
      advance();
    }
  }

  /// A transfer that may share links is over: runs all that waited for it alone.
  void arrived(std::size_t executed, double start, double finish) {
    start_[executed] = start;
    finish_[executed] = finish;
    const auto task = static_cast<TaskId>(executed % tasks_);
    const std::size_t base = executed - task;
    if (is_tied(task)) {
      tie(base, task, start, finish);
    }
    pass_on<false>(base, task, finish);
    release_pending(base);
    follow_ties();
    advance();
  }

  /// Whether every program has run to its end.
  bool complete() const {
    return std::all_of(heads_.begin(), heads_.end(), [&](std::size_t head) { return head >= executed_; });
  }

  /// When a task ends; where that is not known yet, no more than the inputs that it misses.
  double finish_of(std::size_t executed) const { return finish_[executed]; }

  /// The times of the first iterations that are known so far, from the origin on; the others are infinite. Only where
  /// the origin is beyond the number of inputs of any task.
  Timeline known(int iterations) const {
    const std::size_t executed = static_cast<std::size_t>(tasks_) * iterations;
    Timeline known{.iterations = iterations};
    known.start.resize(executed);
    known.finish.resize(executed);
    for (std::size_t at = 0; at < executed; ++at) {
      const bool ends = finish_[at] >= origin_;
      known.start[at] = ends ? start_[at] - origin_ : kInfinity;
      known.finish[at] = ends ? finish_[at] - origin_ : kInfinity;
    }
    return known;
  }

  /// The times, from the origin on; takes them out of the recurrence. Throws where tasks wait for each other.
  Timeline take() {
    if (!complete()) {
      throw std::runtime_error("the replay stopped with tasks waiting for each other");
    }
    if constexpr (Flows::kShares) {
      for (std::vector<double>* times : {&timeline_.start, &timeline_.finish}) {
        std::for_each(times->begin(), times->end(), [this](double& time) { time -= origin_; });
      }
    }
    return std::move(timeline_);
  }

private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  static constexpr std::int32_t kComputesNot = -1, kShared = -2; // in the place of a device

  // The fields of a work that the recurrence needs, packed for the cache.
  struct Kind {
    double seconds, latency;
    std::int32_t device;  // kComputesNot: a transfer, load or join; kShared: a transfer that leaves the recurrence
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

  // A lone transfer lasts its latency and its flow. Where flows may share, the two are added one after the other, as
  // the flow's own start counts there.
  void list_kinds() {
    kinds_.reserve(graph_.works.size());
    for (std::size_t index = 0; index < graph_.works.size(); ++index) {
      const Work& work = graph_.works[index];
      Kind kind{work.seconds.value, work.latency.value, work.computes() ? work.device : kComputesNot, work.channel};
      if constexpr (Flows::kShares) {
        if (work.transfers()) {
          kind.seconds = flows_->seconds_alone(work);
          kind.device = flows_->may_share(index) ? kShared : kComputesNot;
        }
      }
      kinds_.push_back(kind);
    }
  }

  void advance() {
    const bool plain = !has_ties_ && constant_;
    while (awake_ > 0) {
      plain ? advance_woken<true>() : advance_woken<false>();
      follow_ties();
    }
  }

  // Starts tasks that wait for nothing: batches that fit into the empty queue.
  void start_loading() {
    for (std::size_t now = 0; now < executed_; ++now) {
      const auto task = static_cast<TaskId>(now % tasks_);
      if (finish_[now] == 0 && kinds_[work_[task]].device < 0) {
        ++finish_[now];
        tied_.push_back({now - task, task, origin_});
      }
    }
  }

  bool is_tied(TaskId task) const { return has_ties_ && graph_.tie_begin[task] != graph_.tie_begin[task + 1]; }

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

  // When a computation ends that has a time of its own, or whose device changes its speed.
  [[gnu::noinline]] double at_speeds(std::size_t now, std::int32_t device, double start, double seconds) const {
    seconds = computing_ != nullptr ? computing_[now] : seconds;
    if (speeds_.constant()) {
      return start + seconds;
    }
    if constexpr (Flows::kShares) {
      return start + (speeds_.finish(device, start - origin_, seconds) - (start - origin_));
    }
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
        free = plain || constant_ ? start + seconds : at_speeds(now, number, start, seconds);
        start_[now] = start;
        finish_[now] = free;
        if (++at == device.end) {
          at = device.begin;
          base += tasks_;
        }
        now = base + *at;
        if (!plain && is_tied(task)) {
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
      if constexpr (Flows::kShares) {
        if (kind.device == kShared) {
          flows_->ready(now, work_[task], arrival);
          return;
        }
        time = flow_apart(kind, arrival);
      } else {
        if (kind.channel >= 0) { // its bytes flow after its latency, and after those before it have left the channel
          double& drained = drained_[kind.channel];
          arrival = std::max(arrival, drained - kind.latency);
          drained = arrival + kind.seconds;
        }
        time = arrival + kind.seconds;
      }
      start_[now] = arrival;
      finish_[now] = time;
      if (!plain && is_tied(task)) {
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

  // When a flow ends that meets no other; moves its transfer's start to where its latency begins.
  double flow_apart(const Kind& kind, double& start) {
    double begin = start + kind.latency;
    if (kind.channel >= 0) {
      double& drained = drained_[kind.channel];
      if (begin < drained) {
        begin = drained;
        start = drained - kind.latency;
      }
      drained = begin + kind.seconds;
    }
    return begin + kind.seconds;
  }

  // Pointers into graph_ and timeline_, for the loops above.
  const TaskGraph& graph_;
  const std::int32_t *work_, *successor_begin_;
  const TaskId* successors_;
  double *start_ = nullptr, *finish_ = nullptr;

  int tasks_;
  bool has_ties_, constant_;
  Speeds speeds_;
  const double* computing_; // [iteration * tasks + task]: seconds of computations; null: those of works
  Flows* flows_;
  double origin_;
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

} // namespace stagecraft
