// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pipeline/measure_cores.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <thread>

#include "sim/base/improves.hpp"
#include "sim/schedule/task_graph/add_edges.hpp"

#include "calibrate/pipeline/part_chain.hpp"

namespace stagecraft::pipeline {
namespace {

// What is measured, on which backend.
struct Subject {
  const Setting& setting;
  Backend& backend;
  bool real_time;
};

// Sleeps after the run for as long as it took, since others may need these cores.
Timeline execute_and_rest(const Subject& subject, const TaskGraph& graph, const Channels& channels) {
  const Setting setting{graph, subject.setting.platform, channels, {}, {}};
  Timeline timeline = execute(setting, subject.backend, {1, subject.real_time, true}).timeline;
  std::this_thread::sleep_for(std::chrono::duration<double>(timeline.end()));
  return timeline;
}

// Builds graphs in which devices run programs without waiting for each other.
class Bench {
public:
  explicit Bench(const Subject& subject) : subject_(subject) {
    graph_.works = subject.setting.graph.works;
    graph_.devices = subject.setting.graph.devices;
  }

  /// Adds the program of the next device, `times` times.
  void add_program(int times) {
    const std::size_t device = begin_device();
    for (int time = 0; time < times; ++time) {
      for (const TaskId task : subject_.setting.graph.program_of(device)) {
        graph_.work.push_back(subject_.setting.graph.work[task]);
      }
    }
  }

  /// Adds one work of the next device, `times` times.
  void add_work(std::int32_t work, int times) {
    begin_device();
    graph_.work.insert(graph_.work.end(), static_cast<std::size_t>(times), work);
  }

  /// Adds a rest of the next device, on its core, until device `until` has ended.
  void add_rest(std::size_t until) {
    const std::size_t device = begin_device();
    resting_.emplace_back(graph_.tasks(), until);
    graph_.work.push_back(static_cast<std::int32_t>(graph_.works.size()));
    graph_.works.push_back({.device = static_cast<std::int32_t>(device)});
  }

  Timeline run() {
    graph_.program_begin.push_back(graph_.tasks());
    graph_.program.resize(graph_.work.size());
    std::iota(graph_.program.begin(), graph_.program.end(), 0);
    graph_.micro_batch.assign(graph_.work.size(), 0);
    std::vector<Edge> ends;
    for (const auto& [rest, until] : resting_) {
      ends.push_back({graph_.program_of(until).back(), rest});
    }
    add_edges(graph_, ends);
    const Channels none{std::vector<std::int32_t>(graph_.works.size(), -1), {}, {}};
    return execute_and_rest(subject_, graph_, none);
  }

  const TaskGraph& graph() const { return graph_; }

private:
  std::size_t begin_device() {
    graph_.program_begin.push_back(graph_.tasks());
    return graph_.program_begin.size() - 1;
  }

  const Subject& subject_;
  TaskGraph graph_;
  std::vector<std::pair<TaskId, std::size_t>> resting_; // and the device whose end it waits for
};

std::vector<double> durations(const Timeline& timeline, std::span<const TaskId> tasks) {
  std::vector<double> seconds;
  for (const TaskId task : tasks) {
    seconds.push_back(timeline.finish[task] - timeline.start[task]);
  }
  return seconds;
}

double sum(std::span<const double> values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// Seconds of each task of a device's program while the other devices rest.
std::vector<double> measure_alone(const Subject& subject, std::size_t device) {
  Bench bench(subject);
  for (std::size_t other = 0; other < subject.setting.graph.devices.size(); ++other) {
    other == device ? bench.add_program(1) : bench.add_rest(device);
  }
  const Timeline timeline = bench.run();
  return durations(timeline, bench.graph().program_of(device));
}

// How many times longer each device takes than alone, until the first of them has ended. Shorter programs run several
// times.
std::vector<double> measure_slowdowns(const Subject& subject, const std::vector<std::vector<double>>& alone) {
  double longest = 0;
  for (const std::vector<double>& seconds : alone) {
    longest = std::max(longest, sum(seconds));
  }
  Bench bench(subject);
  for (const std::vector<double>& seconds : alone) {
    bench.add_program(std::max(1, static_cast<int>(std::lround(longest / sum(seconds)))));
  }
  const Timeline timeline = bench.run();
  double end = kInfinity;
  for (std::size_t device = 0; device < alone.size(); ++device) {
    end = std::min(end, timeline.finish[bench.graph().program_of(device).back()]);
  }
  std::vector<double> slowdowns;
  for (std::size_t device = 0; device < alone.size(); ++device) {
    const auto program = bench.graph().program_of(device);
    double before = 0, now = 0;
    for (std::size_t at = 0; at < program.size() && timeline.finish[program[at]] <= end; ++at) {
      before += alone[device][at % alone[device].size()];
      now += timeline.finish[program[at]] - timeline.start[program[at]];
    }
    slowdowns.push_back(now / before);
  }
  return slowdowns;
}

// How many times longer each work of `device` takes than alone while another device does one work over and over and the
// rest do nothing. Tasks that end after the other device do not count.
void measure_beside(const Subject& subject, const std::vector<std::vector<double>>& alone, std::size_t device,
                    std::int32_t other, Seconds seconds, std::vector<double>& contention) {
  constexpr double kSlower = 1.3; // slowdown by another device, at most
  const TaskGraph& graph = subject.setting.graph;
  const auto beside = static_cast<std::size_t>(graph.works[other].device);
  Bench bench(subject);
  for (std::size_t number = 0; number < alone.size(); ++number) {
    if (number == device) {
      bench.add_program(1);
    } else if (number == beside) {
      bench.add_work(other, static_cast<int>(std::ceil(kSlower * sum(alone[device]) / seconds.value)));
    } else {
      bench.add_rest(device);
    }
  }
  const Timeline timeline = bench.run();
  const double end = timeline.finish[bench.graph().program_of(beside).back()];
  const auto program = bench.graph().program_of(device);
  std::vector<double> before(graph.works.size(), 0.0), now(graph.works.size(), 0.0);
  for (std::size_t at = 0; at < program.size(); ++at) {
    const std::int32_t work = bench.graph().work[program[at]];
    if (timeline.finish[program[at]] <= end) {
      before[work] += alone[device][at];
      now[work] += timeline.finish[program[at]] - timeline.start[program[at]];
    }
  }
  for (std::size_t work = 0; work < before.size(); ++work) {
    if (before[work] > 0) {
      contention[work * graph.works.size() + static_cast<std::size_t>(other)] = now[work] / before[work];
    }
  }
}

// The slowdowns of all pairs of works that run side by side.
std::vector<double> measure_contention(const Subject& subject, const std::vector<std::vector<double>>& alone,
                                       const std::vector<Seconds>& works) {
  constexpr Seconds kShortest{20e-6}; // shorter works hardly slow others
  std::vector<double> contention(works.size() * works.size(), 1.0);
  for (std::size_t other = 0; other < works.size(); ++other) {
    for (std::size_t device = 0; device < alone.size() && works[other] >= kShortest; ++device) {
      if (static_cast<std::size_t>(subject.setting.graph.works[other].device) != device) {
        measure_beside(subject, alone, device, static_cast<std::int32_t>(other), works[other], contention);
      }
    }
  }
  return contention;
}

// Sets the mean time of each work's tasks.
void measure_computations(const Subject& subject, PartTimes& parts) {
  const TaskGraph& graph = subject.setting.graph;
  std::vector<int> tasks(graph.works.size(), 0);
  parts.works.resize(graph.works.size());
  std::vector<std::vector<double>> alone;
  for (std::size_t device = 0; device < graph.devices.size(); ++device) {
    alone.push_back(measure_alone(subject, device));
    const auto program = graph.program_of(device);
    for (std::size_t at = 0; at < program.size(); ++at) {
      parts.works[graph.work[program[at]]] += Seconds{alone.back()[at]};
      ++tasks[graph.work[program[at]]];
    }
  }
  for (std::size_t work = 0; work < tasks.size(); ++work) {
    parts.works[work] = parts.works[work] / std::max(1, tasks[work]);
  }
  if (alone.size() > 1) {
    parts.slowdowns = measure_slowdowns(subject, alone);
    parts.contention = measure_contention(subject, alone, parts.works);
  }
}

// A transfer of the run with the computations before and after it: those that make and use its data if there are such
// on its ends.
struct Hop {
  std::int32_t before = -1, transfer = -1, after = -1;
};

// One hop for each work that is a transfer.
std::vector<Hop> hops_of(const Setting& setting, PartChain& chain) {
  const TaskGraph& graph = setting.graph;
  std::vector<Hop> hops(graph.works.size());
  for (TaskId task = 0; task < graph.tasks(); ++task) {
    const std::int32_t number = graph.work[task];
    const Work& work = graph.works[number];
    for (const TaskId next : graph.successors_of(task)) {
      const std::int32_t later = graph.work[next];
      if (work.computes() && graph.works[later].transfers()) {
        hops[later].before = number;
      } else if (work.transfers() && graph.works[later].computes() && graph.works[later].device != work.device) {
        hops[number].after = later;
      }
    }
  }
  std::vector<Hop> found;
  for (std::size_t number = 0; number < hops.size(); ++number) {
    if (graph.works[number].transfers()) {
      const int channel = setting.channels.of_work[number];
      Hop hop = hops[number];
      hop.transfer = static_cast<std::int32_t>(number);
      hop.before = hop.before >= 0 ? hop.before : chain.computation(graph.works[number].device, Seconds{0});
      hop.after = hop.after >= 0 ? hop.after : chain.computation(chain.receiver(channel), Seconds{0});
      found.push_back(hop);
    }
  }
  return found;
}

// Times from the sender's finish to the receiver's start; for each channel a line over its sizes.
void measure_copies(const Subject& subject, PartTimes& parts) {
  const Setting& setting = subject.setting;
  constexpr int kRepeats = 4;
  PartChain chain(setting);
  const std::vector<Hop> hops = hops_of(setting, chain);
  if (hops.empty()) {
    return;
  }
  std::vector<PartChain::Transfer> transfers;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    for (const Hop& hop : hops) {
      transfers.push_back(chain.add(hop.before, hop.transfer, hop.after));
    }
  }
  const TaskGraph& graph = chain.finish();
  const Timeline timeline = execute_and_rest(subject, graph, chain.channels());
  std::vector<std::map<double, std::vector<double>>> seconds(setting.channels.work_of.size()); // [channel], by bytes
  for (std::size_t i = hops.size(); i < transfers.size(); ++i) { // the first time is a warm-up
    const std::int32_t work = hops[i % hops.size()].transfer;
    seconds[setting.channels.of_work[work]][graph.works[work].bytes].push_back(timeline.start[transfers[i].after] -
                                                                               timeline.finish[transfers[i].before]);
  }
  parts.legs.resize(graph.legs.size());
  for (const Hop& hop : hops) {
    parts.legs[graph.works[hop.transfer].leg] = fit_path_cost(seconds[setting.channels.of_work[hop.transfer]]);
  }
}

} // namespace

PartTimes measure_on_cores(const Setting& setting, Backend& backend, bool real_time) {
  const Subject subject{setting, backend, real_time};
  PartTimes parts;
  measure_computations(subject, parts);
  measure_copies(subject, parts);
  return parts;
}

} // namespace stagecraft::pipeline
