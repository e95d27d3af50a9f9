// SPDX-License-Identifier: Apache-2.0
#include "sim/report/memory_report.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "sim/base/format/csv.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

Json series_of(const MemoryUse& use) {
  Json list = Json::array();
  for (const MemoryStep& step : use.steps) {
    list.push_back({{"seconds", step.time},
                    {"bytes", step.bytes.value},
                    {"stashed", step.stashed.value},
                    {"recompute", step.recompute.value},
                    {"in_flight", step.in_flight}});
  }
  return list;
}

Json stashes_of(const MemoryUse& use) {
  Json list = Json::array();
  for (const Stash& stash : use.stashes) {
    list.push_back({{"stage", stash.stage},
                    {"micro_batch", stash.micro_batch},
                    {"bytes", stash.bytes.value},
                    {"from_seconds", stash.from},
                    {"to_seconds", stash.to}});
  }
  return list;
}

// Whether anything is held beside tensors.
bool reserves(const MemoryUse& use) {
  return use.context.value > 0 || use.fixed.communicators.value > 0 || use.peak.fragments.value > 0;
}

std::string name_of(const TaskGraph& graph, TaskId task) {
  const Work& work = graph.works[graph.work[task]];
  if (work.kind == TaskKind::optimizer) {
    return "O@" + std::to_string(work.stage);
  }
  const Action action{work.kind, graph.micro_batch[task], work.stage};
  return to_text(std::span(&action, 1));
}

} // namespace

MemoryReport report_memory(const TaskGraph& graph, const Timeline& timeline, std::vector<std::string> devices,
                           bool series) {
  MemoryReport report{.devices = std::move(devices)};
  for (std::size_t device = 0; device < graph.devices.size(); ++device) {
    report.uses.push_back(series ? memory_over_time(graph, timeline, device) : peak_memory(graph, timeline, device));
    report.peak_tasks.push_back(name_of(graph, report.uses.back().peak.task));
  }
  return report;
}

std::string memory_json(const MemoryReport& report, bool series) {
  Json list = Json::array();
  for (std::size_t device = 0; device < report.uses.size(); ++device) {
    const MemoryUse& use = report.uses[device];
    Json one = {
        {"device", report.devices[device]},
        {"weights", use.fixed.weights.value},
        {"gradients", use.fixed.gradients.value},
        {"optimizer", use.fixed.optimizer.value},
        {"buffers", use.fixed.buffers.value},
        {"peak", {{"seconds", use.peak.time}, {"task", report.peak_tasks[device]}, {"bytes", use.peak.bytes.value}}}};
    if (reserves(use)) {
      one["context"] = use.context.value;
      one["communicators"] = use.fixed.communicators.value;
      one["peak"]["fragments"] = use.peak.fragments.value;
    }
    if (series) {
      one["series"] = series_of(use);
      one["stashes"] = stashes_of(use);
    }
    list.push_back(std::move(one));
  }
  return list.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string memory_csv(const MemoryReport& report) {
  const bool reserve = std::any_of(report.uses.begin(), report.uses.end(), reserves);
  std::string text = "device,seconds,bytes,weights,gradients,optimizer,buffers,stashed,recompute,in_flight" +
                     std::string(reserve ? ",context,communicators,fragments" : "") + "\n";
  for (std::size_t device = 0; device < report.uses.size(); ++device) {
    const MemoryUse& use = report.uses[device];
    std::string fixed;
    for (const Bytes part : {use.fixed.weights, use.fixed.gradients, use.fixed.optimizer, use.fixed.buffers}) {
      fixed += csv_cell(part.value) + ",";
    }
    const std::string name = csv_cell(report.devices[device]) + ",";
    for (const MemoryStep& step : use.steps) {
      text += name + csv_cell(step.time) + "," + csv_cell(step.bytes.value) + "," + fixed +
              csv_cell(step.stashed.value) + "," + csv_cell(step.recompute.value) + "," +
              std::to_string(step.in_flight);
      if (reserve) {
        text += "," + csv_cell(use.context.value) + "," + csv_cell(use.fixed.communicators.value) + "," +
                csv_cell(step.fragments.value);
      }
      text += "\n";
    }
  }
  return text;
}

std::string memory_sentence(const MemoryReport& report) {
  std::size_t most = 0;
  for (std::size_t device = 1; device < report.uses.size(); ++device) {
    most = report.uses[device].peak.bytes > report.uses[most].peak.bytes ? device : most;
  }
  const FixedMemory& fixed = report.uses[most].fixed;
  const MemoryPeak& peak = report.uses[most].peak;
  return "Most memory: '" + report.devices[most] + "' holds " + to_text(peak.bytes) + " at " + report.peak_tasks[most] +
         ", " + to_text(Seconds{peak.time}) + " from the start: weights " + to_text(fixed.weights) + ", gradients " +
         to_text(fixed.gradients) + ", optimizer " + to_text(fixed.optimizer) + ", buffers " + to_text(fixed.buffers) +
         ", activations of " + std::to_string(peak.in_flight) + " micro-batches " + to_text(peak.stashed) +
         (peak.recompute.value > 0 ? ", brought back " + to_text(peak.recompute) : "") +
         (report.uses[most].context.value > 0 ? ", context " + to_text(report.uses[most].context) : "") +
         (fixed.communicators.value > 0 ? ", communicators " + to_text(fixed.communicators) : "") +
         (peak.fragments.value > 0 ? ", fragments " + to_text(peak.fragments) : "") + ".";
}

} // namespace stagecraft
