// Key `perturb` of a study: each run repeated in worlds that differ a little from the platform.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "sim/base/yaml.hpp"
#include "sim/replay/engines.hpp"
#include "sim/replay/perturb.hpp"

namespace stagecraft {

struct PerturbOptions {
  int samples = 20; ///< draws
  Perturbation world;
  std::optional<Failures> failures;
};

/// Reads the mapping of key `perturb`: docs/formats/study.md. Throws InputError.
PerturbOptions load_perturb(const yaml::Node& node, const Platform& platform);

/// The iteration time of one run in each draw. The engine replays `iterations` iterations, measured over `window` as
/// for the run itself. The same for the same seed.
std::vector<double> perturbed_iterations(const PerturbOptions& options, const Platform& platform,
                                         const TaskGraph& graph, int iterations, int window, const EngineRow& engine,
                                         std::uint64_t seed);

} // namespace stagecraft
