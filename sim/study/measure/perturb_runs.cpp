// SPDX-License-Identifier: Apache-2.0
#include "sim/study/measure/perturb_runs.hpp"

#include "sim/study/measure/measure_graph.hpp"
#include "sim/timeline/metrics.hpp"

namespace stagecraft {

std::vector<double> perturbed_iterations(const PerturbOptions& options, const Platform& platform,
                                         const TaskGraph& graph, int iterations, int window, const EngineRow& engine,
                                         std::uint64_t seed) {
  const Platform disturbed = with_bandwidths(platform, options.world);
  const int draws = options.world.jitter > 0 ? options.samples : 1; // without jitter all replays are one
  std::vector<TaskGraph> graphs;
  for (int sample = 0; sample < draws; ++sample) {
    Random random(seed, static_cast<std::uint64_t>(sample));
    graphs.push_back(perturb(graph, disturbed, options.world, random));
  }
  std::vector<ReplayRequest> requests;
  for (const TaskGraph& drawn : graphs) {
    requests.push_back({drawn, disturbed, iterations});
  }
  std::vector<Timeline> timelines = engine.replay(until_steady(requests));
  for (Timeline& timeline : timelines) {
    timeline.window = window;
  }
  if (graph.overlaps) {
    make_steady(engine.replay, requests, timelines);
  }
  std::vector<double> seconds;
  for (int sample = 0; sample < options.samples; ++sample) {
    const auto draw = static_cast<std::size_t>(sample % draws);
    Seconds iteration = measure(graphs[draw], timelines[draw], disturbed).iteration;
    if (options.failures) {
      constexpr std::uint64_t kOfFailures = 1ULL << 32U; // failures draw their own random numbers
      Random random(seed, kOfFailures + static_cast<std::uint64_t>(sample));
      iteration = with_failures(iteration, static_cast<int>(graph.devices.size()), *options.failures, random);
    }
    seconds.push_back(iteration.value);
  }
  return seconds;
}

} // namespace stagecraft
