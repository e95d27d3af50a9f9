// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pipeline/measure_parts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "sim/base/statistics.hpp"

#include "calibrate/fit/fit_line.hpp"

namespace stagecraft::pipeline {
namespace {

constexpr Seconds kComputation{0.3e-3};
constexpr std::array kTransfers = {1.5e-3, 4e-3, 9e-3, 16e-3}; // s that bytes of the sizes measured take
constexpr int kRepeats = 5;

// Legs that behave alike, so that one of them need be measured.
using LegKind = std::pair<std::vector<double>, double>; // bandwidths of its links, its latency

LegKind kind_of(const Leg& leg, const Platform& platform) {
  LegKind kind{{}, leg.latency.value};
  for (const LinkId link : leg.links) {
    kind.first.push_back(platform.links[link].bandwidth.value);
  }
  return kind;
}

// A chain: computation, transfer, computation, … The transfers go the ways of the run.
class Chain {
public:
  explicit Chain(const Setting& setting) : setting_(setting), ways_(setting.ways) {
    graph_.devices = setting.graph.devices;
    graph_.legs = setting.graph.legs;
    ways_.of_work.clear();
    ways_.transfers.assign(ways_.work_of.size(), 0);
    programs_.resize(graph_.devices.size());
    receivers_.assign(setting.platform.vertices.size(), -1);
    for (std::size_t device = 0; device < graph_.devices.size(); ++device) {
      receivers_[graph_.devices[device]] = static_cast<int>(device); // the vertex of a device has its number
    }
  }

  struct Transfer {
    TaskId before, transfer, after; // what computes, is sent, and waits for it
  };

  // Adds one transfer of a way; where its leg ends at no device the sender itself waits for it.
  Transfer add(int way, double bytes) {
    const Work& carried = setting_.graph.works[ways_.work_of[way]];
    const Leg& leg = graph_.legs[carried.leg];
    const int to = leg.links.empty() ? -1 : receivers_[setting_.platform.links[leg.links.back()].to];
    Transfer added{};
    added.before = compute(carried.device);
    Work work{.kind = TaskKind::transfer, .device = carried.device, .leg = carried.leg};
    work.latency = leg.latency;
    work.bytes = bytes;
    work.seconds = leg.latency + Bytes{bytes} / leg.bandwidth;
    added.transfer = task(work, way);
    ++ways_.transfers[way];
    added.after = compute(to >= 0 ? to : carried.device);
    return added;
  }

  /// Adds a computation.
  TaskId compute(int device) {
    const TaskId added = task({.device = device, .seconds = kComputation}, -1);
    programs_[device].push_back(added);
    return added;
  }

  const TaskGraph& finish() {
    for (TaskId task = 0; task < graph_.tasks(); ++task) {
      graph_.waits.push_back(task > 0 ? 1 : 0);
      graph_.successor_begin.push_back(task);
      graph_.successors.push_back(task + 1);
    }
    graph_.successors.pop_back();
    graph_.successor_begin.push_back(static_cast<std::int32_t>(graph_.successors.size()));
    for (const auto& program : programs_) {
      graph_.program_begin.push_back(static_cast<std::int32_t>(graph_.program.size()));
      graph_.program.insert(graph_.program.end(), program.begin(), program.end());
    }
    graph_.program_begin.push_back(static_cast<std::int32_t>(graph_.program.size()));
    return graph_;
  }

  const Ways& ways() const { return ways_; }

private:
  TaskId task(const Work& work, int way) {
    graph_.works.push_back(work);
    graph_.work.push_back(static_cast<std::int32_t>(graph_.works.size()) - 1);
    graph_.micro_batch.push_back(0);
    ways_.of_work.push_back(way);
    return static_cast<TaskId>(graph_.work.size()) - 1;
  }

  const Setting& setting_;
  TaskGraph graph_;
  Ways ways_;
  std::vector<std::vector<TaskId>> programs_;
  std::vector<int> receivers_; // [vertex]: index of a device of the graph, or -1
};

// Seconds by bytes, the median of equal sizes.
PathCost fit_cost(const std::map<double, std::vector<double>>& measured) {
  std::vector<fit::LinePoint> points;
  for (const auto& [bytes, seconds] : measured) {
    points.push_back({bytes, Seconds{quantile(seconds, 0.5)}});
  }
  if (points.size() == 1) {
    return {points.front().time, 0};
  }
  const PiecewiseLine line = fit::fit_line(points, 1);
  const double low = points.front().bytes, high = points.back().bytes;
  const double slope = (line.time(high) - line.time(low)).value / (high - low);
  return {std::max(Seconds{0}, line.time(low) - Seconds{slope * low}), slope};
}

} // namespace

PartTimes measure_parts(const Setting& setting, Backend& backend, bool real_time) {
  Chain chain(setting);
  std::vector<TaskId> computations;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    computations.push_back(chain.compute(0));
  }
  std::map<LegKind, std::vector<std::pair<double, Chain::Transfer>>> measured; // bytes of each
  for (std::size_t way = 0; way < setting.ways.work_of.size(); ++way) {
    const Leg& leg = setting.graph.legs[setting.graph.works[setting.ways.work_of[way]].leg];
    const auto [slot, fresh] = measured.try_emplace(kind_of(leg, setting.platform));
    for (int repeat = 0; fresh && repeat < kRepeats; ++repeat) {
      for (const double seconds : kTransfers) {
        const bool unlimited = std::isinf(leg.bandwidth.value);
        const double bytes = unlimited ? 0 : std::round(leg.bandwidth.value * seconds);
        slot->second.emplace_back(bytes, chain.add(static_cast<int>(way), bytes));
        computations.push_back(slot->second.back().second.before);
      }
    }
  }
  const TaskGraph& graph = chain.finish();
  const Timeline timeline = execute({graph, setting.platform, chain.ways()}, backend, {1, real_time}).timeline;
  PartTimes parts;
  std::vector<double> beyond;
  for (const TaskId task : computations) {
    beyond.push_back(timeline.finish[task] - timeline.start[task] - kComputation.value);
  }
  parts.computation = Seconds{quantile(beyond, 0.5)};
  std::map<LegKind, PathCost> costs;
  for (const auto& [kind, transfers] : measured) {
    std::map<double, std::vector<double>> seconds;
    for (const auto& [bytes, one] : transfers) {
      seconds[bytes].push_back(timeline.start[one.after] - timeline.finish[one.before]);
    }
    costs[kind] = fit_cost(seconds);
  }
  for (const Leg& leg : setting.graph.legs) {
    parts.legs.push_back(costs.at(kind_of(leg, setting.platform)));
  }
  return parts;
}

} // namespace stagecraft::pipeline
