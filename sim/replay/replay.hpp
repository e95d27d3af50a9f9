// Replay: a task graph and a platform become a timeline. No SimGrid type appears here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// One graph to run, `iterations` times in a row.
struct ReplayRequest {
  const TaskGraph* graph = nullptr;
  int iterations = 1;
};

/// Runs a batch of graphs. Throws std::runtime_error when tasks remain that never became ready (a deadlock in the
/// graph).
using ReplayFunction = std::vector<Timeline> (*)(const Platform& platform, std::span<const ReplayRequest> requests);

/// No two transfers share bandwidth: each has its links for itself. A recurrence along program order, no event queue.
std::vector<Timeline> replay_analytic(const Platform& platform, std::span<const ReplayRequest> requests);

/// SimGrid: concurrent transfers share their links max-min fairly; computations are timers. Runs in a forked child, so
/// that any number of platforms can be replayed by one process.
std::vector<Timeline> replay_simgrid(const Platform& platform, std::span<const ReplayRequest> requests);

struct EngineRow {
  std::string_view name, help;
  ReplayFunction replay;
};

inline constexpr std::array kEngines = {
    EngineRow{"simgrid", "max-min sharing of links by SimGrid, computations as timers", replay_simgrid},
    EngineRow{"analytic", "every transfer has its links for itself; a hundred times faster", replay_analytic},
};

} // namespace stagecraft
