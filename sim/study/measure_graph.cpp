// SPDX-License-Identifier: Apache-2.0
#include "sim/study/measure_graph.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

constexpr int kIterationsOfLocalStep = 4; // the period between the last two is steady

int micro_batches_of(const TaskGraph& graph) {
  return 1 + *std::max_element(graph.micro_batch.begin(), graph.micro_batch.end());
}

// Iterations that carry two micro-batches for each device. By then the first ones have left a pipeline that never runs
// dry.
int settling(const TaskGraph& graph) {
  const int micro_batches = micro_batches_of(graph);
  return (2 * static_cast<int>(graph.devices.size()) + micro_batches - 1) / micro_batches;
}

} // namespace

int window_of(const TaskGraph& graph) {
  constexpr int kLeast = 4;
  const int least = graph.overlaps ? std::max(kLeast, settling(graph)) : graph.workers > 0 ? kLeast : 1;
  return (least + graph.cycle - 1) / graph.cycle * graph.cycle;
}

int iterations_of(const Study& study, const TaskGraph& graph) {
  if (graph.workers == 0 && !graph.overlaps) {
    return study.training.step == StepMode::barrier ? 1 : kIterationsOfLocalStep;
  }
  if (graph.workers == 0) {
    return 1 + settling(graph) + window_of(graph);
  }
  const int begun = graph.workers + graph.queue; // batches, until the queue is full and every worker has had one
  const int micro_batches = micro_batches_of(graph);
  return kIterationsOfLocalStep + (begun + micro_batches - 1) / micro_batches + window_of(graph);
}

Metrics measure_window(const Study& study, const TaskGraph& graph, Timeline timeline) {
  timeline.window = window_of(graph);
  return measure(graph, timeline, study.platform);
}

Metrics measure_analytic(const Study& study, const TaskGraph& graph) {
  const ReplayRequest request{graph, study.platform, iterations_of(study, graph)};
  return measure_window(study, graph, std::move(replay_analytic({&request, 1}).front()));
}

std::vector<std::string> memory_overflows(const Platform& platform, const TaskGraph& graph, const Metrics& metrics) {
  std::vector<std::string> overflows;
  for (std::size_t i = 0; i < graph.devices.size(); ++i) {
    const Bytes have = platform.type_of(graph.devices[i]).memory;
    const Bytes need = metrics.peak_memory[i];
    if (need > have) {
      const TaskId task = metrics.peak_task[i];
      const Action action{graph.works[graph.work[task]].kind, graph.micro_batch[task],
                          graph.works[graph.work[task]].stage};
      overflows.push_back("'" + platform.devices[graph.devices[i]].name + "' overflows by " + to_text(need - have) +
                          " at " + to_text(std::span(&action, 1)) + ": " + to_text(need) + " of " + to_text(have));
    }
  }
  return overflows;
}

Evaluation evaluation_of(const Platform& platform, const TaskGraph& graph, const Metrics& metrics) {
  if (std::vector<std::string> overflows = memory_overflows(platform, graph, metrics); !overflows.empty()) {
    return {.why_not = std::move(overflows.front())};
  }
  return {.iteration = metrics.iteration, .devices = graph.devices, .busy = metrics.busy, .tail = metrics.tail};
}

} // namespace stagecraft
