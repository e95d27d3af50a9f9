// SPDX-License-Identifier: Apache-2.0
#include "sim/study/measure/measure_graph.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/base/count_of.hpp"
#include "sim/timeline/steady.hpp"

namespace stagecraft {
namespace {

int micro_batches_of(const TaskGraph& graph) {
  return 1 + *std::max_element(graph.micro_batch.begin(), graph.micro_batch.end());
}

// Iterations that carry two micro-batches for each device. By then the first ones have left a pipeline that never runs
// dry.
int settling(const TaskGraph& graph) {
  const int micro_batches = micro_batches_of(graph);
  return (2 * static_cast<int>(graph.devices.size()) + micro_batches - 1) / micro_batches;
}

// How many of the last iterations are measured, in whole cycles of the graph.
int window_of(const TaskGraph& graph) {
  constexpr int kLeast = 4;
  const int least = graph.overlaps ? std::max(kLeast, settling(graph)) : graph.workers > 0 ? kLeast : 1;
  return (least + graph.cycle - 1) / graph.cycle * graph.cycle;
}

// Whether a graph may be replayed over so many iterations for a steady period.
bool is_affordable(const TaskGraph& graph, int iterations) {
  constexpr int kMostIterations = 4096;
  constexpr double kMostTasks = 400'000;
  return iterations <= kMostIterations && static_cast<double>(graph.tasks()) * iterations <= kMostTasks;
}

// As many iterations as a replay may double `iterations` to at once. More seldom are needed, and all take memory.
int most_iterations(const TaskGraph& graph, int iterations) {
  constexpr int kMostTimes = 8;
  int most = iterations;
  while (most < kMostTimes * iterations && is_affordable(graph, 2 * most)) {
    most *= 2;
  }
  return most;
}

} // namespace

int iterations_of(const Study& study, const TaskGraph& graph) {
  if (graph.workers == 0 && !graph.overlaps) {
    const bool waits = study.training.step == StepMode::barrier && graph.ties.empty(); // for nothing before it
    return waits ? 1 : kIterationsOfLocalStep;
  }
  if (graph.workers == 0) {
    return 1 + settling(graph) + window_of(graph) + settling(graph); // to fill, to be measured, to run out
  }
  const int begun = graph.workers + graph.queue; // batches, until the queue is full and every worker has had one
  const int micro_batches = micro_batches_of(graph);
  return kIterationsOfLocalStep + (begun + micro_batches - 1) / micro_batches + window_of(graph);
}

std::vector<ReplayRequest> until_steady(std::span<const ReplayRequest> requests) {
  std::vector<ReplayRequest> watched(requests.begin(), requests.end());
  for (ReplayRequest& request : watched) {
    request.most_iterations = request.graph.overlaps ? most_iterations(request.graph, request.iterations) : 0;
  }
  return watched;
}

std::vector<double> make_steady(const Replayer& replay, std::span<const ReplayRequest> requests,
                                std::span<Timeline> timelines) {
  std::vector<double> spreads(requests.size(), 0.0);
  std::vector<std::size_t> open; // timelines whose periods are not known yet
  for (std::size_t i = 0; i < requests.size(); ++i) {
    timelines[i].window = std::min(window_of(requests[i].graph), timelines[i].iterations); // some ask for one only
    if (requests[i].graph.overlaps) {
      open.push_back(i);
    }
  }
  while (!open.empty()) {
    std::vector<ReplayRequest> longer;
    std::vector<std::size_t> repeated;
    for (const std::size_t i : open) {
      const Steadiness steadiness = find_steady(requests[i].graph, timelines[i]);
      const int iterations = 2 * timelines[i].iterations;
      if (steadiness.spread > kSteady && is_affordable(requests[i].graph, iterations)) {
        longer.push_back({requests[i].graph, requests[i].platform, iterations, requests[i].speeds});
        repeated.push_back(i);
      } else {
        cut_short(requests[i].graph, timelines[i], steadiness.iterations);
        timelines[i].window = steadiness.window;
        spreads[i] = steadiness.spread > kSteady ? steadiness.spread : 0;
      }
    }
    std::vector<Timeline> replayed = longer.empty() ? std::vector<Timeline>{} : replay(until_steady(longer));
    for (std::size_t i = 0; i < replayed.size(); ++i) {
      timelines[repeated[i]] = std::move(replayed[i]);
    }
    open = std::move(repeated);
  }
  return spreads;
}

std::vector<Timeline> replay_steady(const Replayer& replay, std::span<const ReplayRequest> requests) {
  std::vector<Timeline> timelines = replay(until_steady(requests));
  make_steady(replay, requests, timelines);
  return timelines;
}

Metrics measure_graph(const Study& study, const Platform& platform, const TaskGraph& graph, const Replayer& replay) {
  const ReplayRequest request{graph, platform, iterations_of(study, graph)};
  std::vector<Timeline> timeline = replay_steady(replay, {&request, 1});
  double spread = 0;
  let_drift(study, replay, {&request, 1}, timeline, {&spread, 1});
  return measure(graph, timeline.front(), platform);
}

Metrics measure_analytic(const Study& study, const TaskGraph& graph) {
  return measure_graph(study, study.platform, graph, replay_analytic);
}

namespace {

struct Overflow {
  DeviceId device = 0;
  Bytes excess;
  std::string text;
};

std::vector<Overflow> find_overflows(const Platform& platform, const TaskGraph& graph, const Metrics& metrics) {
  std::vector<Overflow> overflows;
  const std::span<const DeviceId> devices = graph.devices_in_use();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const Bytes have = graph.reserve.with(platform.type_of(devices[i]).memory, Bytes{0});
    const Bytes need = metrics.peak_memory[i];
    if (need > have) {
      const TaskId task = metrics.peak_task[i];
      const Action action{graph.works[graph.work[task]].kind, graph.micro_batch[task],
                          graph.works[graph.work[task]].stage};
      overflows.push_back({devices[i], need - have,
                           "'" + platform.devices[devices[i]].name + "' overflows by " + to_text(need - have) + " at " +
                               to_text(std::span(&action, 1)) + ": " + to_text(need) + " of " + to_text(have)});
    }
  }
  return overflows;
}

} // namespace

std::vector<std::string> memory_overflows(const Platform& platform, const TaskGraph& graph, const Metrics& metrics) {
  std::vector<std::string> texts;
  for (Overflow& overflow : find_overflows(platform, graph, metrics)) {
    texts.push_back(std::move(overflow.text));
  }
  return texts;
}

std::string memory_that_fits(const Platform& platform, const TaskGraph& graph, const Metrics& metrics) {
  constexpr double kRoundedUp = 1.001; // the text has four digits and must not round below the need
  Bytes most;
  for (const Overflow& overflow : find_overflows(platform, graph, metrics)) {
    most = std::max(most, overflow.excess);
  }
  return most.value > 0 ? to_text(kRoundedUp * most) + " more memory per device" : "";
}

std::vector<std::string> overflows_of_stages(const Platform& platform, const Plan& plan, const TaskGraph& graph,
                                             const Metrics& metrics) {
  const auto stage_of = [&](DeviceId device) {
    const auto has_it = [&](const Stage& stage) {
      return std::find(stage.devices.begin(), stage.devices.end(), device) != stage.devices.end();
    };
    return std::find_if(plan.stages.begin(), plan.stages.end(), has_it) - plan.stages.begin();
  };
  std::map<std::ptrdiff_t, std::vector<Overflow>> of_stage; // stages of one set of devices count as the first of them
  for (Overflow& overflow : find_overflows(platform, graph, metrics)) {
    of_stage[stage_of(overflow.device)].push_back(std::move(overflow));
  }
  std::vector<std::string> texts;
  for (auto& [stage, overflows] : of_stage) {
    const auto worst = std::max_element(overflows.begin(), overflows.end(),
                                        [](const Overflow& a, const Overflow& b) { return a.excess < b.excess; });
    const std::size_t others = overflows.size() - 1;
    texts.push_back(std::move(worst->text) + (others > 0 ? ", the most of " + count_of(overflows.size(), "device") +
                                                               " of stage " + std::to_string(stage) + " that overflow"
                                                         : ""));
  }
  return texts;
}

Evaluation evaluation_of(const Platform& platform, const TaskGraph& graph, const Metrics& metrics) {
  if (std::vector<std::string> overflows = memory_overflows(platform, graph, metrics); !overflows.empty()) {
    return {.why_not = std::move(overflows.front())};
  }
  const std::span<const DeviceId> devices = graph.devices_in_use();
  return {.iteration = metrics.iteration,
          .devices = {devices.begin(), devices.end()},
          .busy = metrics.busy,
          .tail = metrics.tail};
}

} // namespace stagecraft
