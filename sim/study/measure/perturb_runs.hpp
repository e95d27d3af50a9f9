// A run repeated in the worlds of key `perturb`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/replay/engines.hpp"
#include "sim/study/keys/perturb_options.hpp"

namespace stagecraft {

/// The iteration time of one run in each draw. The engine replays `iterations` iterations, measured over `window` as
/// for the run itself. The same for the same seed.
std::vector<double> perturbed_iterations(const PerturbOptions& options, const Platform& platform,
                                         const TaskGraph& graph, int iterations, int window, const EngineRow& engine,
                                         std::uint64_t seed);

} // namespace stagecraft
