// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pipeline/measure_cores.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "sim/base/statistics.hpp"

#include "calibrate/pipeline/part_chain.hpp"

namespace stagecraft::pipeline {
namespace {

// A kernel of a work.
struct Place {
  std::int32_t work;
  std::size_t kernel;
};

// What a device does with one micro-batch: forward by stage, then all else as it goes back; a step comes last.
std::vector<Place> places_of(const Setting& setting, std::int32_t device) {
  std::vector<std::int32_t> order;
  for (std::size_t work = 0; work < setting.graph.works.size(); ++work) {
    if (setting.graph.works[work].computes() && setting.graph.works[work].device == device) {
      order.push_back(static_cast<std::int32_t>(work));
    }
  }
  const auto rank = [&](std::int32_t index) {
    const Work& work = setting.graph.works[index];
    const bool forward = work.kind == TaskKind::forward;
    return std::tuple(forward ? 0 : work.kind == TaskKind::optimizer ? 2 : 1, forward ? work.stage : -work.stage);
  };
  std::stable_sort(order.begin(), order.end(), [&](auto one, auto other) { return rank(one) < rank(other); });
  std::vector<Place> places;
  for (const std::int32_t work : order) {
    for (std::size_t kernel = 0; kernel < setting.kernels[work].size(); ++kernel) {
      places.push_back({work, kernel});
    }
  }
  return places;
}

constexpr int kWarm = 1, kAlone = 3, kBeside = 4; // times that a device goes through all its kernels

// Every kernel of a device a task of its own, after one that has no kernel. One device after the other goes through its
// own alone, then all do at once.
class Bench {
public:
  Bench(const Setting& setting, const std::vector<std::vector<Place>>& places) {
    graph_.devices = setting.graph.devices;
    for (std::size_t device = 0; device < places.size(); ++device) {
      const auto first = static_cast<std::int32_t>(graph_.works.size());
      add_work(device, {});
      for (const Place& place : places[device]) {
        add_work(device, {setting.kernels[place.work][place.kernel]});
      }
      graph_.program_begin.push_back(graph_.tasks());
      begin_.push_back(graph_.tasks());
      length_.push_back(static_cast<std::int32_t>(graph_.works.size()) - first);
      for (int time = 0; time < kWarm + kAlone + kBeside; ++time) {
        for (std::int32_t work = first; work < first + length_.back(); ++work) {
          graph_.work.push_back(work);
        }
      }
    }
    graph_.program_begin.push_back(graph_.tasks());
    graph_.program.resize(graph_.work.size());
    std::iota(graph_.program.begin(), graph_.program.end(), 0);
    take_turns();
  }

  const TaskGraph& graph() const { return graph_; }
  const std::vector<std::vector<cpu::KernelRun>>& kernels() const { return kernels_; }
  /// The task without a kernel with which a device begins to go through the others so many times later.
  TaskId round(std::size_t device, int time) const { return begin_[device] + time * length_[device]; }

private:
  void add_work(std::size_t device, const std::vector<cpu::KernelRun>& runs) {
    graph_.works.push_back({.device = static_cast<std::int32_t>(device)});
    kernels_.push_back(runs);
  }

  // A device waits for the one before it, and all but the last for the last.
  void take_turns() {
    graph_.micro_batch.assign(graph_.work.size(), 0);
    graph_.waits.assign(graph_.work.size(), 0);
    const std::size_t devices = begin_.size();
    for (TaskId task = 0; task < graph_.tasks(); ++task) {
      graph_.successor_begin.push_back(static_cast<std::int32_t>(graph_.successors.size()));
      for (std::size_t device = 0; device < devices; ++device) {
        if (task != round(device, kWarm + kAlone) - 1) {
          continue;
        }
        if (device + 1 < devices) {
          follow(begin_[device + 1]);
        } else {
          for (std::size_t other = 0; other < device; ++other) {
            follow(round(other, kWarm + kAlone));
          }
        }
      }
    }
    graph_.successor_begin.push_back(static_cast<std::int32_t>(graph_.successors.size()));
  }

  void follow(TaskId task) {
    graph_.successors.push_back(task);
    ++graph_.waits[task];
  }

  TaskGraph graph_;
  std::vector<std::vector<cpu::KernelRun>> kernels_; // [work]
  std::vector<TaskId> begin_;                        // [device]
  std::vector<std::int32_t> length_;                 // [device]: works
};

// Of the kernels of one device, over all rounds.
struct Samples {
  std::vector<double> empty;
  std::vector<std::vector<double>> alone; // [place]
  std::vector<double> slowdowns;          // one a round
};

// What all devices did at once ends when the first of them has nothing left to do.
void read_round(const Bench& bench, const Timeline& timeline, std::vector<Samples>& samples) {
  const std::size_t devices = samples.size();
  const auto took = [&](TaskId task) { return timeline.finish[task] - timeline.start[task]; };
  double end = std::numeric_limits<double>::infinity();
  for (std::size_t device = 0; device < devices; ++device) {
    end = std::min(end, timeline.finish[bench.round(device, kWarm + kAlone + kBeside) - 1]);
  }
  for (std::size_t device = 0; device < devices; ++device) {
    Samples& own = samples[device];
    double alone = 0, beside = 0;
    for (std::size_t place = 0; place < own.alone.size(); ++place) {
      std::vector<double> now;
      for (int time = kWarm; time < kWarm + kAlone; ++time) {
        now.push_back(took(bench.round(device, time) + 1 + static_cast<TaskId>(place)));
      }
      own.alone[place].insert(own.alone[place].end(), now.begin(), now.end());
      for (int time = kWarm + kAlone; time < kWarm + kAlone + kBeside; ++time) {
        const TaskId task = bench.round(device, time) + 1 + static_cast<TaskId>(place);
        if (timeline.finish[task] <= end) {
          alone += quantile(now, 0.5);
          beside += took(task);
        }
      }
    }
    for (int time = kWarm; time < kWarm + kAlone; ++time) {
      own.empty.push_back(took(bench.round(device, time)));
    }
    own.slowdowns.push_back(devices > 1 && alone > 0 ? beside / alone : 1);
  }
}

std::vector<Samples> measure_kernels(const Setting& setting, const std::vector<std::vector<Place>>& places,
                                     bool real_time) {
  constexpr int kRounds = 5, kLeast = 2;
  constexpr double kMost = 2; // s of all rounds beyond the least
  const Bench bench(setting, places);
  const Ways none{std::vector<std::int32_t>(bench.graph().works.size(), -1), {}, {}};
  const Setting own{bench.graph(), setting.platform, none, bench.kernels(), setting.speeds};
  const std::unique_ptr<Backend> backend = make_cpu(own);
  std::vector<Samples> samples(places.size());
  for (std::size_t device = 0; device < places.size(); ++device) {
    samples[device].alone.resize(places[device].size());
  }
  double all = 0;
  for (int round = 0; round < kRounds && (round < kLeast || all < kMost); ++round) {
    const Timeline timeline = execute(own, *backend, {1, real_time, true}).timeline;
    read_round(bench, timeline, samples);
    const double makespan = *std::max_element(timeline.finish.begin(), timeline.finish.end());
    all += makespan;
    std::this_thread::sleep_for(std::chrono::duration<double>(makespan)); // others may wait for these cores
  }
  return samples;
}

void measure_computations(const Setting& setting, bool real_time, PartTimes& parts) {
  std::vector<std::vector<Place>> places;
  for (std::size_t device = 0; device < setting.graph.devices.size(); ++device) {
    places.push_back(places_of(setting, static_cast<std::int32_t>(device)));
  }
  const std::vector<Samples> samples = measure_kernels(setting, places, real_time);
  parts.computation = Seconds{quantile(samples.front().empty, 0.5)};
  parts.works.resize(setting.graph.works.size());
  for (std::size_t device = 0; device < places.size(); ++device) {
    for (std::size_t place = 0; place < places[device].size(); ++place) {
      const double seconds = quantile(samples[device].alone[place], 0.5) - parts.computation.value;
      parts.works[places[device][place].work] += Seconds{std::max(0.0, seconds)};
    }
    parts.slowdowns.push_back(quantile(samples[device].slowdowns, 0.5));
  }
}

// What a way carries in the run: sizes, and between which works.
struct Traffic {
  std::set<double> sizes;
  std::int32_t before = -1, after = -1; // of the first of its transfers
};

std::vector<Traffic> traffic_of(const Setting& setting) {
  const TaskGraph& graph = setting.graph;
  std::vector<Traffic> ways(setting.ways.work_of.size());
  const auto way_of = [&](TaskId task) { return setting.ways.of_work[graph.work[task]]; };
  const auto note = [](std::int32_t& first, std::int32_t work) { first = first < 0 ? work : first; };
  for (TaskId task = 0; task < graph.tasks(); ++task) {
    const Work& work = graph.works[graph.work[task]];
    if (work.transfers()) {
      ways[way_of(task)].sizes.insert(work.bytes);
    }
    for (const TaskId next : graph.successors_of(task)) {
      const Work& later = graph.works[graph.work[next]];
      if (work.computes() && later.transfers()) {
        note(ways[way_of(next)].before, graph.work[task]);
      } else if (work.transfers() && later.computes() && later.device != work.device) {
        note(ways[way_of(task)].after, graph.work[next]);
      }
    }
  }
  return ways;
}

// Each as after the computation that makes its data, so that caches are as full as in the run.
void measure_copies(const Setting& setting, bool real_time, PartTimes& parts) {
  constexpr int kRepeats = 9;
  const std::vector<Traffic> traffic = traffic_of(setting);
  if (traffic.empty()) {
    return;
  }
  PartChain chain(setting, Seconds{0});
  std::vector<std::vector<std::pair<double, PartChain::Transfer>>> transfers(traffic.size());
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    for (std::size_t way = 0; way < traffic.size(); ++way) {
      for (const double bytes : traffic[way].sizes) {
        transfers[way].emplace_back(bytes,
                                    chain.add(static_cast<int>(way), bytes, traffic[way].before, traffic[way].after));
      }
    }
  }
  const TaskGraph& graph = chain.finish();
  std::vector<std::vector<cpu::KernelRun>> kernels;
  for (const std::int32_t origin : chain.origins()) {
    kernels.push_back(origin < 0 ? std::vector<cpu::KernelRun>{} : setting.kernels[origin]);
  }
  const Setting copies{graph, setting.platform, chain.ways(), kernels, {}};
  const Timeline timeline = execute(copies, *make_cpu(copies), {1, real_time, true}).timeline;
  std::vector<PathCost> costs;
  for (const auto& of_way : transfers) {
    std::map<double, std::vector<double>> seconds;
    for (const auto& [bytes, one] : of_way) {
      seconds[bytes].push_back(timeline.start[one.after] - timeline.finish[one.before]);
    }
    costs.push_back(fit_path_cost(seconds));
  }
  parts.legs.resize(setting.graph.legs.size());
  for (std::size_t work = 0; work < setting.graph.works.size(); ++work) {
    if (setting.graph.works[work].transfers()) {
      parts.legs[setting.graph.works[work].leg] = costs[setting.ways.of_work[work]];
    }
  }
}

} // namespace

PartTimes measure_on_cores(const Setting& setting, Backend& /*backend*/, bool real_time) {
  PartTimes parts;
  measure_computations(setting, real_time, parts);
  measure_copies(setting, real_time, parts);
  return parts;
}

} // namespace stagecraft::pipeline
