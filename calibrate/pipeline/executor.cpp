// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pipeline/executor.hpp"

#include <algorithm>
#include <mutex>
#include <system_error>
#include <thread>

namespace stagecraft::pipeline {
namespace {

// Added to the priority of channels and of devices that sleep, since they must wake at once.
constexpr int kSleepers = 10;

using Entry = std::size_t; // an entry of the timeline: iteration * tasks + task

// Wakes threads that wait. A waiting thread reads `count`, then checks for work, then waits for `count` to change.
struct Bell {
  std::atomic<std::uint32_t> count = 0;

  void ring() {
    count.fetch_add(1, std::memory_order_release);
    count.notify_all();
  }
};

// The transfers of a channel in the order in which they become ready.
struct SendQueue {
  Bell bell;
  std::mutex mutex; // protects the queue from several threads that add to it
  std::vector<Entry> queue;
  std::atomic<std::size_t> queued = 0;
};

class Runner {
public:
  Runner(const Setting& setting, Backend& backend, const ExecuteOptions& options)
      : setting_(setting), graph_(setting.graph), backend_(backend), options_(options),
        waits_(static_cast<std::size_t>(graph_.tasks()) * options.iterations), start_(waits_.size()),
        finish_(waits_.size()), bells_(graph_.devices.size()), send_queues_(setting.channels.work_of.size()) {
    const std::vector<std::int32_t> waits = graph_.waits_over<std::int32_t>(options.iterations);
    for (Entry entry = 0; entry < waits.size(); ++entry) {
      waits_[entry].store(waits[entry], std::memory_order_relaxed);
    }
    for (std::size_t channel = 0; channel < send_queues_.size(); ++channel) {
      send_queues_[channel].queue.resize(static_cast<std::size_t>(setting.channels.transfers[channel]) *
                                         options.iterations);
    }
  }

  Execution run() {
    std::vector<std::thread> threads;
    try {
      for (std::size_t device = 0; device < bells_.size(); ++device) {
        threads.emplace_back([this, device] { run_device(device); });
      }
      for (std::size_t channel = 0; channel < send_queues_.size(); ++channel) {
        threads.emplace_back([this, channel] { run_channel(channel); });
      }
    } catch (const std::system_error& failure) {
      fail(std::string("cannot make a thread per device and channel: ") + failure.what());
    }
    begin(threads.size());
    for (std::thread& thread : threads) {
      thread.join();
    }
    if (failed_) {
      throw ExecutionFailure(cause_);
    }
    return {timeline(), !refused_};
  }

private:
  TaskId task_of(Entry entry) const { return static_cast<TaskId>(entry % graph_.tasks()); }
  const Work& work_of(Entry entry) const { return graph_.works[graph_.work[task_of(entry)]]; }
  Job job_of(Entry entry) const {
    return {task_of(entry), static_cast<int>(entry / graph_.tasks()), start_[entry], graph_.work[task_of(entry)],
            work_of(entry)};
  }

  // Makes all threads begin at one moment, soon after the last of them is ready.
  void begin(std::size_t threads) {
    constexpr Nanoseconds kPause = 100'000, kSoon = 1'000'000;
    while (present_ < threads) {
      sleep_until(now() + kPause, failed_);
    }
    begin_ = now() + kSoon;
    begun_.ring();
  }

  // Called first in each thread. Returns whether it has real-time priority.
  bool await_beginning(int above) {
    const bool granted = options_.real_time && ask_for_real_time(above);
    if (!granted) {
      refused_ = true;
    }
    ++present_;
    for (std::uint32_t none = 0; begun_.count == none;) {
      begun_.count.wait(none);
    }
    sleep_until(begin_, failed_);
    return granted;
  }

  // Waits until `ready`, without leaving the core if `holds`; returns false if the run has failed.
  template <class Ready> bool wait(Bell& bell, bool holds, const Ready& ready) {
    for (;;) {
      const std::uint32_t seen = bell.count.load(std::memory_order_acquire);
      if (failed_.load(std::memory_order_acquire)) {
        return false;
      }
      if (ready()) {
        return true;
      }
      if (!holds) {
        bell.count.wait(seen, std::memory_order_acquire);
      }
    }
  }

  void run_device(std::size_t device) {
    backend_.enter_device(static_cast<int>(device));
    const bool holds = await_beginning(options_.holds_cores ? 0 : kSleepers) && options_.holds_cores;
    for (int iteration = 0; iteration < options_.iterations; ++iteration) {
      for (const TaskId task : graph_.program_of(device)) {
        const Entry entry = static_cast<Entry>(iteration) * graph_.tasks() + task;
        const auto ready = [&] { return waits_[entry].load(std::memory_order_acquire) == 0; };
        if (!wait(bells_[device], holds, ready)) {
          return;
        }
        start_[entry] = now();
        follow_ties(entry, true);
        if (!carry_out(entry, [&](const Job& job) { backend_.compute(job); })) {
          return;
        }
      }
    }
  }

  void run_channel(std::size_t number) {
    backend_.enter_channel(static_cast<int>(number));
    await_beginning(options_.holds_cores ? 1 : kSleepers);
    SendQueue& sends = send_queues_[number];
    Nanoseconds free = 0;
    for (std::size_t at = 0; at < sends.queue.size(); ++at) {
      if (!wait(sends.bell, false, [&] { return sends.queued.load(std::memory_order_acquire) > at; })) {
        return;
      }
      const Entry entry = sends.queue[at];
      start_[entry] = std::max(start_[entry], free);
      if (!carry_out(entry, [&](const Job& job) { backend_.transfer(job, static_cast<int>(number)); })) {
        return;
      }
      free = finish_[entry];
    }
  }

  template <class Do> bool carry_out(Entry entry, const Do& action) {
    const Job job = job_of(entry);
    try {
      action(job);
    } catch (const std::exception& failure) {
      fail(describe(job) + ": " + failure.what());
      return false;
    }
    finish(entry, now());
    return true;
  }

  void finish(Entry entry, Nanoseconds time) {
    finish_[entry] = time;
    const Entry base = entry - task_of(entry);
    for (const TaskId next : graph_.successors_of(task_of(entry))) {
      arrive(base + next);
    }
    follow_ties(entry, false);
  }

  void follow_ties(Entry entry, bool from_start) {
    for (const Tie& tie : graph_.ties_of(task_of(entry))) {
      const Entry later = entry - task_of(entry) + static_cast<Entry>(tie.iterations) * graph_.tasks() + tie.to;
      if (tie.from_start == from_start && later < waits_.size()) {
        arrive(later);
      }
    }
  }

  // An input of the task has arrived; with the last one the task may start.
  void arrive(Entry entry) {
    if (waits_[entry].fetch_sub(1, std::memory_order_acq_rel) > 1) {
      return;
    }
    const Work& work = work_of(entry);
    if (work.computes()) {
      bells_[work.device].ring();
      return;
    }
    start_[entry] = now();
    if (!work.transfers()) { // a join
      finish(entry, start_[entry]);
      return;
    }
    SendQueue& sends = send_queues_[setting_.channels.of_work[graph_.work[task_of(entry)]]];
    {
      const std::lock_guard lock(sends.mutex);
      const std::size_t at = sends.queued.load(std::memory_order_relaxed);
      sends.queue[at] = entry;
      sends.queued.store(at + 1, std::memory_order_release);
    }
    sends.bell.ring();
  }

  // Records the first failure, which is the cause of later ones.
  void fail(const std::string& cause) {
    {
      const std::lock_guard lock(mutex_);
      if (failed_) {
        return;
      }
      cause_ = cause;
      failed_ = true;
    }
    backend_.interrupt();
    for (Bell& bell : bells_) {
      bell.ring();
    }
    for (SendQueue& sends : send_queues_) {
      sends.bell.ring();
    }
  }

  std::string describe(const Job& job) const {
    const std::string device = setting_.platform.devices[graph_.devices[job.work.device]].name;
    return name_of_task(graph_, job.task) + " of iteration " + std::to_string(job.iteration) + " on " + device;
  }

  Timeline timeline() const {
    Timeline timeline;
    timeline.iterations = options_.iterations;
    for (Entry entry = 0; entry < start_.size(); ++entry) {
      timeline.start.push_back(seconds(start_[entry] - begin_).value);
      timeline.finish.push_back(seconds(finish_[entry] - begin_).value);
    }
    return timeline;
  }

  const Setting& setting_;
  const TaskGraph& graph_;
  Backend& backend_;
  const ExecuteOptions& options_;
  Nanoseconds begin_ = 0; // set before begun_ rings
  Bell begun_;
  std::atomic<std::size_t> present_ = 0; // number of threads that are ready
  std::vector<std::atomic<std::int32_t>> waits_;
  std::vector<Nanoseconds> start_, finish_;
  std::vector<Bell> bells_; // [device]
  std::vector<SendQueue> send_queues_;
  std::atomic<bool> failed_ = false, refused_ = false;
  std::mutex mutex_;
  std::string cause_;
};

// How many tasks become ready if each one that does also finishes, in the order of the devices' programs.
long reachable_tasks(const TaskGraph& graph, int iterations) {
  std::vector<std::int32_t> waits = graph.waits_over<std::int32_t>(iterations);
  const auto tasks = static_cast<std::size_t>(graph.tasks());
  std::vector<std::size_t> position(graph.devices.size(), 0);
  std::vector<Entry> ready;
  const auto head = [&](std::size_t device) { // adds the device's next computation if it is ready
    const auto program = graph.program_of(device);
    if (position[device] == program.size() * iterations) {
      return;
    }
    const Entry entry = position[device] / program.size() * tasks + program[position[device] % program.size()];
    if (waits[entry] == 0) {
      ++position[device];
      ready.push_back(entry);
    }
  };
  const auto arrive = [&](Entry entry) {
    const Work& work = graph.works[graph.work[entry % tasks]];
    if (--waits[entry] == 0) {
      work.computes() ? head(work.device) : ready.push_back(entry);
    }
  };
  for (std::size_t device = 0; device < graph.devices.size(); ++device) {
    head(device);
  }
  long done = 0;
  while (!ready.empty()) {
    const Entry entry = ready.back();
    ready.pop_back();
    ++done;
    const auto task = static_cast<TaskId>(entry % tasks);
    for (const TaskId next : graph.successors_of(task)) {
      arrive(entry - task + next);
    }
    for (const Tie& tie : graph.ties_of(task)) {
      const Entry later = entry - task + static_cast<Entry>(tie.iterations) * tasks + tie.to;
      if (later < waits.size()) {
        arrive(later);
      }
    }
    const Work& work = graph.works[graph.work[task]];
    if (work.computes()) {
      head(work.device);
    }
  }
  return done;
}

} // namespace

std::string name_of_task(const TaskGraph& graph, TaskId task) {
  const Work& work = graph.works[graph.work[task]];
  std::string text(1, kTaskLetters[static_cast<std::size_t>(work.kind)]);
  if (work.kind != TaskKind::optimizer && work.kind != TaskKind::all_reduce) {
    text += std::to_string(graph.micro_batch[task]);
  }
  text += "@" + std::to_string(work.stage);
  return work.to_stage != work.stage ? text + ">" + std::to_string(work.to_stage) : text;
}

std::string why_not_executable(const TaskGraph& graph, int iterations) {
  if (graph.workers > 0) {
    return "a loader is not carried out for real; allowed: training data at hand";
  }
  const long tasks = static_cast<long>(graph.tasks()) * iterations;
  const long reachable = reachable_tasks(graph, iterations);
  return reachable == tasks ? ""
                            : std::to_string(tasks - reachable) + " of " + std::to_string(tasks) +
                                  " tasks wait for each other; allowed: schedules that can run";
}

Seconds latest_sleeper(const TaskGraph& graph, const Timeline& timeline) {
  Seconds latest;
  for (Entry entry = 0; entry < timeline.start.size(); ++entry) {
    const Work& work = graph.works[graph.work[entry % graph.tasks()]];
    if (work.computes()) {
      latest = std::max(latest, Seconds{timeline.finish[entry] - timeline.start[entry]} - work.seconds);
    }
  }
  return latest;
}

Execution execute(const Setting& setting, Backend& backend, const ExecuteOptions& options) {
  if (const std::string reason = why_not_executable(setting.graph, options.iterations); !reason.empty()) {
    throw std::invalid_argument(reason);
  }
  return Runner(setting, backend, options).run();
}

} // namespace stagecraft::pipeline
