// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pipeline/measure_parts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "sim/base/statistics.hpp"

#include "calibrate/pipeline/part_chain.hpp"

namespace stagecraft::pipeline {
namespace {

constexpr std::array kTransfers = {1.5e-3, 4e-3, 9e-3, 16e-3}; // seconds that the measured sizes take
constexpr int kRepeats = 5;

// Legs of the same kind behave alike, so that only one of them is measured.
using LegKind = std::pair<std::vector<double>, double>; // bandwidths of its links, its latency

LegKind kind_of(const Leg& leg, const Platform& platform) {
  LegKind kind{{}, leg.latency.value};
  for (const LinkId link : leg.links) {
    kind.first.push_back(platform.links[link].bandwidth.value);
  }
  return kind;
}

} // namespace

PartTimes measure_parts(const Setting& setting, Backend& backend, bool real_time) {
  constexpr Seconds kComputation{0.3e-3};
  PartChain chain(setting);
  std::vector<std::int32_t> computation; // [device]
  for (std::size_t device = 0; device < setting.graph.devices.size(); ++device) {
    computation.push_back(chain.computation(static_cast<int>(device), kComputation));
  }
  std::vector<TaskId> computations;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    computations.push_back(chain.add(computation.front()));
  }
  std::map<LegKind, std::vector<std::pair<double, PartChain::Transfer>>> measured; // bytes and transfer, for each kind
  for (std::size_t channel = 0; channel < setting.channels.work_of.size(); ++channel) {
    const Work& work = setting.graph.works[setting.channels.work_of[channel]];
    const Leg& leg = setting.graph.legs[work.leg];
    const int number = static_cast<int>(channel);
    const auto [slot, fresh] = measured.try_emplace(kind_of(leg, setting.platform));
    for (int repeat = 0; fresh && repeat < kRepeats; ++repeat) {
      for (const double seconds : kTransfers) {
        const bool unlimited = std::isinf(leg.bandwidth.value);
        const double bytes = unlimited ? 0 : std::round(leg.bandwidth.value * seconds);
        slot->second.emplace_back(bytes, chain.add(computation[work.device], chain.transfer(number, bytes),
                                                   computation[chain.receiver(number)]));
        computations.push_back(slot->second.back().second.before);
      }
    }
  }
  const TaskGraph& graph = chain.finish();
  const Timeline timeline = execute({graph, setting.platform, chain.channels()}, backend, {1, real_time}).timeline;
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
    costs[kind] = fit_path_cost(seconds);
  }
  for (const Leg& leg : setting.graph.legs) {
    parts.legs.push_back(costs.at(kind_of(leg, setting.platform)));
  }
  return parts;
}

} // namespace stagecraft::pipeline
