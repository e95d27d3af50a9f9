// SPDX-License-Identifier: Apache-2.0
#include "sim/study/keys/perturb_options.hpp"

#include "sim/base/format/physical_ranges.hpp"

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

} // namespace

Failures read_failures(const yaml::Node& node, bool are_drawn) {
  yaml::Map map(node, "failures");
  Failures failures;
  failures.mean_time_between = map.quantity<Seconds>("mean_time_between", physical::kInterval);
  failures.checkpoint_every = map.integer("checkpoint_every", 1, kMostIterations, failures.checkpoint_every);
  failures.checkpoint = map.quantity<Seconds>("checkpoint", physical::kDuration, Seconds{0});
  failures.restart = map.quantity<Seconds>("restart", physical::kDuration, Seconds{0});
  if (are_drawn) {
    failures.iterations = map.integer("iterations", 1, kMostIterations, failures.iterations);
  }
  map.finish();
  return failures;
}

PerturbOptions load_perturb(const yaml::Node& node, const Platform& platform) {
  yaml::Map map(node, "perturb");
  PerturbOptions options;
  constexpr int kMostSamples = 10'000;
  options.samples = map.integer("samples", 1, kMostSamples, options.samples);
  options.world.jitter = map.number("jitter", {0, 1, true, "0 to 1"}, 0);
  options.world.speed = read_parts(map, "stragglers", platform.devices, kPart);
  options.world.bandwidth = read_parts(map, "links", platform.links, yaml::kFraction);
  if (const yaml::Node* failures = map.find("failures")) {
    options.failures = read_failures(*failures, true);
  }
  map.finish();
  return options;
}

} // namespace stagecraft
