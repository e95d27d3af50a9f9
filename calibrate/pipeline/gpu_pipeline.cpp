// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pipeline/gpu_pipeline.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "calibrate/pipeline/executor.hpp"
#include "calibrate/pipeline/part_chain.hpp"

namespace stagecraft::pipeline {
namespace {

// A text as one word of the file.
std::string word(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c <= ' ' || c == '#' || c == '=' || c == '\x7f'; }, '_');
  return text.empty() ? "_" : text;
}

// A text as the rest of a line of the file.
std::string line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return (c >= 0 && c < ' ') || c == '#'; }, ' ');
  return text;
}

gpu::PipelineDevice device_of(const Platform& platform, DeviceId device) {
  const DeviceType& type = platform.type_of(device);
  gpu::PipelineDevice made;
  made.name = word(platform.devices[device].name);
  (type.vendor == "nvidia" ? made.processors : made.threads) =
      type.vendor == "nvidia" ? type.processors : std::max(1, type.processors);
  return made;
}

gpu::PipelineWork work_of(const Setting& setting, std::size_t number, gpu::CopyRoute route, const PartChain& chain) {
  const Work& work = setting.graph.works[number];
  gpu::PipelineWork made;
  made.device = work.device;
  if (work.computes()) {
    made.kind = gpu::PipelineWork::Kind::compute;
    for (const cpu::KernelRun& run : setting.kernels[number]) {
      made.kernels.push_back({gpu::parse_kernel(to_text(run.kernel)), run.times});
    }
  } else if (work.transfers()) {
    const Leg& leg = setting.graph.legs[work.leg];
    made.kind = gpu::PipelineWork::Kind::copy;
    made.channel = setting.channels.of_work[number];
    made.to = chain.receiver(made.channel);
    made.bytes = std::llround(work.bytes);
    made.route = route;
    made.latency = leg.latency.value;
    made.bandwidth = std::isinf(leg.bandwidth.value) ? 0 : leg.bandwidth.value;
  }
  return made;
}

} // namespace

gpu::Pipeline gpu_pipeline(const Setting& setting, int iterations, gpu::CopyRoute route, const std::string& name) {
  const TaskGraph& graph = setting.graph;
  gpu::Pipeline made;
  made.name = line(name);
  made.iterations = iterations;
  made.channels = static_cast<int>(setting.channels.work_of.size());
  for (std::size_t device = 0; device < graph.devices.size(); ++device) {
    made.devices.push_back(device_of(setting.platform, graph.devices[device]));
    const auto program = graph.program_of(device);
    made.programs.emplace_back(program.begin(), program.end());
  }
  const PartChain chain(setting);
  for (std::size_t work = 0; work < graph.works.size(); ++work) {
    made.works.push_back(work_of(setting, work, route, chain));
  }
  made.work.assign(graph.work.begin(), graph.work.end());
  for (TaskId task = 0; task < graph.tasks(); ++task) {
    const auto after = graph.successors_of(task);
    made.names.push_back(name_of_task(graph, task));
    made.after.emplace_back(after.begin(), after.end());
    for (const Tie& tie : graph.ties_of(task)) {
      made.ties.push_back({task, tie.to, tie.iterations});
    }
  }
  return made;
}

std::string why_not_its_times(const gpu::Pipeline& pipeline, const gpu::CarriedOut& carried) {
  if (const std::string digest = gpu::digest_of(gpu::to_text(pipeline)); carried.pipeline != digest) {
    return "times of pipeline " + carried.pipeline + "; allowed: those of " + digest +
           ", which `export pipeline` writes with the same flags";
  }
  const auto missing = [](const char* what, std::size_t there, std::size_t wanted) {
    return there == wanted ? "" : std::to_string(there) + " lines '" + what + "'; allowed: " + std::to_string(wanted);
  };
  const std::size_t entries = pipeline.work.size() * static_cast<std::size_t>(pipeline.iterations);
  for (const std::string& reason : {missing("span", carried.spans.size(), entries),
                                    missing("alone", carried.parts.alone.size(), pipeline.works.size()),
                                    missing("slowdown", carried.parts.slowdowns.size(), pipeline.devices.size())}) {
    if (!reason.empty()) {
      return reason;
    }
  }
  return "";
}

Timeline timeline_of(const gpu::CarriedOut& carried, int iterations) {
  Timeline timeline;
  timeline.iterations = iterations;
  for (const gpu::LaneSpan& span : carried.spans) {
    timeline.start.push_back(seconds(span.start).value);
    timeline.finish.push_back(seconds(span.finish).value);
  }
  return timeline;
}

PartTimes part_times_of(const gpu::CarriedOut& carried, const TaskGraph& graph) {
  PartTimes parts;
  parts.computation = Seconds{carried.parts.gap};
  for (const double alone : carried.parts.alone) {
    parts.works.push_back(Seconds{alone});
  }
  parts.slowdowns = carried.parts.slowdowns;
  if (carried.parts.contention.size() == graph.works.size() * graph.works.size()) {
    parts.contention = carried.parts.contention;
  }
  std::map<std::int32_t, std::map<double, std::vector<double>>> hops; // [leg]: seconds by bytes
  for (std::size_t work = 0; work < std::min(carried.parts.hops.size(), graph.works.size()); ++work) {
    const std::vector<double>& times = carried.parts.hops[work];
    if (graph.works[work].transfers() && !times.empty()) {
      std::vector<double>& all = hops[graph.works[work].leg][graph.works[work].bytes];
      all.insert(all.end(), times.begin(), times.end());
    }
  }
  for (const Leg& leg : graph.legs) {
    const auto measured = hops.find(static_cast<std::int32_t>(&leg - graph.legs.data()));
    parts.legs.push_back(measured != hops.end()
                             ? fit_path_cost(measured->second)
                             : PathCost{leg.latency, std::isinf(leg.bandwidth.value) ? 0 : 1 / leg.bandwidth.value});
  }
  return parts;
}

} // namespace stagecraft::pipeline
