// Key `perturb` of a study: each run again in worlds that are not quite as the platform says.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "sim/base/yaml.hpp"
#include "sim/replay/perturb.hpp"

namespace stagecraft {

struct PerturbOptions {
  int samples = 20; ///< draws
  Perturbation world;
  std::optional<Failures> failures;
};

/// Reads the mapping of key `perturb`: docs/formats/study.md. Throws InputError.
PerturbOptions load_perturb(const yaml::Node& node, const Platform& platform);

/// Iteration time of each draw of one run: `iterations` replayed with the engine, the period measured as of the run
/// itself; the same for the same seed.
std::vector<double> perturbed_iterations(const PerturbOptions& options, const Platform& platform,
                                         const TaskGraph& graph, int iterations, int window, const EngineRow& engine,
                                         std::uint64_t seed);

} // namespace stagecraft
