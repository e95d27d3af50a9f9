// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pipeline/part_chain.hpp"

#include <algorithm>

#include "sim/base/statistics.hpp"

#include "calibrate/fit/fit_line.hpp"

namespace stagecraft::pipeline {

PartChain::PartChain(const Setting& setting, Seconds computation)
    : setting_(setting), computation_(computation), ways_(setting.ways) {
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

PartChain::Transfer PartChain::add(int way, double bytes, std::int32_t before, std::int32_t after) {
  const Work& carried = setting_.graph.works[setting_.ways.work_of[way]];
  const Leg& leg = graph_.legs[carried.leg];
  const int to = leg.links.empty() ? -1 : receivers_[setting_.platform.links[leg.links.back()].to];
  Transfer added{};
  added.before = compute(carried.device, before);
  Work work{.kind = TaskKind::transfer, .device = carried.device, .leg = carried.leg};
  work.latency = leg.latency;
  work.bytes = bytes;
  work.seconds = leg.latency + Bytes{bytes} / leg.bandwidth;
  added.transfer = add_task(add_work(work, way, -1));
  if (ways_.transfers[way]++ == 0) {
    ways_.work_of[way] = graph_.work[added.transfer];
  }
  added.after = to >= 0 ? compute(to, after) : compute(carried.device);
  return added;
}

TaskId PartChain::compute(int device, std::int32_t work) {
  const auto [known, fresh] = computations_.try_emplace({device, work}, 0);
  if (fresh) {
    known->second = add_work({.device = device, .seconds = computation_}, -1, work);
  }
  const TaskId added = add_task(known->second);
  programs_[device].push_back(added);
  return added;
}

const TaskGraph& PartChain::finish() {
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

std::int32_t PartChain::add_work(const Work& work, int way, std::int32_t origin) {
  graph_.works.push_back(work);
  ways_.of_work.push_back(way);
  origins_.push_back(origin);
  return static_cast<std::int32_t>(graph_.works.size()) - 1;
}

TaskId PartChain::add_task(std::int32_t work) {
  graph_.work.push_back(work);
  graph_.micro_batch.push_back(0);
  return static_cast<TaskId>(graph_.work.size()) - 1;
}

PathCost fit_path_cost(const std::map<double, std::vector<double>>& measured) {
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

} // namespace stagecraft::pipeline
