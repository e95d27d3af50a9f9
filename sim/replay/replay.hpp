// Replay: a task graph and a platform become a timeline. No SimGrid type appears here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// From a moment on a device computes `speed` times as fast as its tasks say, until its next change. Transfers stay.
struct SpeedChange {
  DeviceId device = 0;
  Seconds at;       ///< from the start of the first iteration
  double speed = 1; ///< more than 0
};

/// One graph to run on the platform that it was made for, `iterations` times in a row.
struct ReplayRequest {
  const TaskGraph& graph;
  const Platform& platform;
  int iterations = 1;
  std::span<const SpeedChange> speeds = {}; ///< every engine integrates them exactly
};

/// Runs a batch of graphs, of one platform or of several. Throws std::runtime_error when tasks remain that never became
/// ready (a deadlock in the graph).
using ReplayFunction = std::vector<Timeline> (*)(std::span<const ReplayRequest> requests);

/// No two transfers share bandwidth: each has its links for itself. A recurrence along program order, no event queue.
std::vector<Timeline> replay_analytic(std::span<const ReplayRequest> requests);

/// SimGrid: concurrent transfers share their links max-min fairly; computations are timers. Runs in a forked child, so
/// that any number of platforms can be replayed by one process.
std::vector<Timeline> replay_simgrid(std::span<const ReplayRequest> requests);

/// The same with computations as SimGrid Execs on hosts that have speed profiles: SimGrid integrates what the other
/// engines compute themselves. A fresh child for each request with speed changes, whose dates are absolute.
std::vector<Timeline> replay_simgrid_full(std::span<const ReplayRequest> requests);

struct EngineRow {
  std::string_view name, help;
  ReplayFunction replay;
  bool dear_to_start = true; ///< a process of its own for every call: many graphs at once are cheaper than one by one
};

inline constexpr std::array kEngines = {
    EngineRow{"simgrid", "max-min sharing of links by SimGrid, computations as timers", replay_simgrid},
    EngineRow{"simgrid-full", "the same with computations by SimGrid too, on hosts with speed profiles",
              replay_simgrid_full},
    EngineRow{"analytic", "every transfer has its links for itself; a hundred times faster", replay_analytic, false},
};

} // namespace stagecraft
