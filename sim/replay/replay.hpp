// Replay: turns a task graph and a platform into a timeline. No SimGrid type appears here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// From `at` on, until its next change, a device computes `speed` times as fast as its tasks say. Transfers do not
/// change.
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
  std::span<const SpeedChange> speeds = {}; ///< every engine integrates the changing speed exactly
};

/// Runs a batch of graphs, of one platform or of several. Throws std::runtime_error when tasks remain that never became
/// ready (a deadlock in the graph).
using ReplayFunction = std::vector<Timeline> (*)(std::span<const ReplayRequest> requests);

/// Transfers never share bandwidth: each has its links for itself. A recurrence along program order, without an event
/// queue.
std::vector<Timeline> replay_analytic(std::span<const ReplayRequest> requests);

/// SimGrid: concurrent transfers share their links max-min fairly; computations are timers. Runs in a forked child,
/// since SimGrid runs one platform per process.
std::vector<Timeline> replay_simgrid(std::span<const ReplayRequest> requests);

/// The same with computations as SimGrid Execs on hosts with speed profiles: SimGrid integrates the speeds that the
/// other engines integrate themselves. Each request with speed changes needs a child of its own, because their dates
/// are absolute.
std::vector<Timeline> replay_simgrid_full(std::span<const ReplayRequest> requests);

struct EngineRow {
  std::string_view name, help;
  ReplayFunction replay;
  bool dear_to_start = true; ///< every call starts a process, so one call with many graphs is cheaper than many calls
};

inline constexpr std::array kEngines = {
    EngineRow{"simgrid", "max-min sharing of links by SimGrid, computations as timers", replay_simgrid},
    EngineRow{"simgrid-full", "the same with computations by SimGrid too, on hosts with speed profiles",
              replay_simgrid_full},
    EngineRow{"analytic", "every transfer has its links for itself; a hundred times faster", replay_analytic, false},
};

} // namespace stagecraft
