// SPDX-License-Identifier: Apache-2.0
#include "sim/study/perturb_runs.hpp"

#include "sim/base/physical_ranges.hpp"
#include "sim/study/measure_graph.hpp"
#include "sim/timeline/metrics.hpp"

namespace stagecraft {
namespace {

constexpr yaml::Range kPart{0.001, 1000, true, "0.001 to 1000"};
constexpr int kMostIterations = 1'000'000;

// One factor for each row of a table of named things, 1 where none is given; empty where the key is missing.
template <class Rows>
std::vector<double> read_parts(yaml::Map& map, const char* key, const Rows& rows, const yaml::Range& range) {
  const yaml::Node* node = map.find(key);
  if (node == nullptr) {
    return {};
  }
  yaml::Map parts(*node, key);
  std::vector<double> values;
  for (const auto& row : rows) {
    values.push_back(parts.number(row.name, range, 1));
  }
  parts.finish();
  return values;
}

Failures read_failures(const yaml::Node& node) {
  yaml::Map map(node, "failures");
  Failures failures;
  failures.mean_time_between = map.quantity<Seconds>("mean_time_between", physical::kInterval);
  failures.checkpoint_every = map.integer("checkpoint_every", 1, kMostIterations, failures.checkpoint_every);
  failures.checkpoint = map.quantity<Seconds>("checkpoint", physical::kDuration, Seconds{0});
  failures.restart = map.quantity<Seconds>("restart", physical::kDuration, Seconds{0});
  failures.iterations = map.integer("iterations", 1, kMostIterations, failures.iterations);
  map.finish();
  return failures;
}

} // namespace

PerturbOptions load_perturb(const yaml::Node& node, const Platform& platform) {
  yaml::Map map(node, "perturb");
  PerturbOptions options;
  constexpr int kMostSamples = 10'000;
  options.samples = map.integer("samples", 1, kMostSamples, options.samples);
  options.world.jitter = map.number("jitter", {0, 1, true, "0 to 1"}, 0);
  options.world.speed = read_parts(map, "stragglers", platform.devices, kPart);
  options.world.bandwidth = read_parts(map, "links", platform.links, yaml::kFraction);
  if (const yaml::Node* failures = map.find("failures")) {
    options.failures = read_failures(*failures);
  }
  map.finish();
  return options;
}

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
  std::vector<Timeline> timelines = engine.replay(requests);
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
