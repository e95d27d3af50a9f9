// Key `perturb` of a study: each run repeated in worlds that differ a little from the platform.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "sim/base/format/yaml.hpp"
#include "sim/replay/what_if/perturb.hpp"

namespace stagecraft {

struct PerturbOptions {
  int samples = 20; ///< draws
  Perturbation world;
  std::optional<Failures> failures;
};

/// Reads how devices fail, from `perturb` or from `buy`, where nothing is drawn. Throws InputError.
Failures read_failures(const yaml::Node& node, bool are_drawn);

/// Reads the mapping of key `perturb`: docs/formats/study.md. Throws InputError.
PerturbOptions load_perturb(const yaml::Node& node, const Platform& platform);

} // namespace stagecraft
