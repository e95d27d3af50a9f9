// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pipeline/part_chain.hpp"

#include <algorithm>

#include "sim/base/statistics.hpp"
#include "sim/schedule/task_graph/add_edges.hpp"

#include "calibrate/fit/forms/fit_line.hpp"

namespace stagecraft::pipeline {

PartChain::PartChain(const Setting& setting) : setting_(setting), channels_(setting.channels) {
  graph_.works = setting.graph.works;
  graph_.devices = setting.graph.devices;
  graph_.legs = setting.graph.legs;
  channels_.transfers.assign(channels_.work_of.size(), 0);
}

PartChain::Transfer PartChain::add(std::int32_t before, std::int32_t transfer, std::int32_t after) {
  Transfer added{};
  added.before = add(before);
  added.transfer = add(transfer);
  added.after = add(after);
  return added;
}

TaskId PartChain::add(std::int32_t work) {
  const std::int32_t channel = channels_.of_work[work];
  if (channel >= 0) {
    ++channels_.transfers[channel];
  }
  graph_.work.push_back(work);
  graph_.micro_batch.push_back(0);
  return static_cast<TaskId>(graph_.work.size()) - 1;
}

std::int32_t PartChain::computation(int device, Seconds seconds) {
  graph_.works.push_back({.device = device, .seconds = seconds});
  channels_.of_work.push_back(-1);
  return static_cast<std::int32_t>(graph_.works.size()) - 1;
}

std::int32_t PartChain::transfer(int channel, double bytes) {
  Work work = graph_.works[channels_.work_of[channel]];
  const Leg& leg = graph_.legs[work.leg];
  work.kind = TaskKind::transfer;
  work.latency = leg.latency;
  work.bytes = bytes;
  work.seconds = leg.latency + Bytes{bytes} / leg.bandwidth;
  graph_.works.push_back(work);
  channels_.of_work.push_back(channel);
  return static_cast<std::int32_t>(graph_.works.size()) - 1;
}

int PartChain::receiver(int channel) const {
  const Work& work = graph_.works[channels_.work_of[channel]];
  const std::vector<LinkId>& links = graph_.legs[work.leg].links;
  const std::vector<DeviceId>& devices = graph_.devices;
  const int end =
      links.empty() ? -1 : setting_.platform.links[links.back()].to; // a device's vertex has the number of the device
  const auto at = std::find(devices.begin(), devices.end(), end);
  return at != devices.end() ? static_cast<int>(at - devices.begin()) : work.device;
}

const TaskGraph& PartChain::finish() {
  std::vector<Edge> chain;
  for (TaskId task = 1; task < graph_.tasks(); ++task) {
    chain.push_back({task - 1, task});
  }
  add_edges(graph_, chain);
  for (std::size_t device = 0; device < graph_.devices.size(); ++device) {
    graph_.program_begin.push_back(static_cast<std::int32_t>(graph_.program.size()));
    for (TaskId task = 0; task < graph_.tasks(); ++task) {
      const Work& work = graph_.works[graph_.work[task]];
      if (work.computes() && work.device == static_cast<std::int32_t>(device)) {
        graph_.program.push_back(task);
      }
    }
  }
  graph_.program_begin.push_back(static_cast<std::int32_t>(graph_.program.size()));
  return graph_;
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
