// Replay: turns a task graph and a platform into a timeline. No SimGrid type appears here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
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
  /// [iteration * tasks + task]: seconds of computations, in place of those of their works; empty: as works say.
  std::span<const double> computing = {};
  /// Where iterations overlap and this is no less than `iterations`: an engine may double them, up to here, until their
  /// period is steady, and what ends after the first device has run out of work may be infinite. find_steady() looks no
  /// further.
  int most_iterations = 0;
};

/// Runs a batch of graphs, of one platform or of several. Where a device type says that exchanges slow computing down,
/// they do (sim/replay/beside_exchange.hpp). Throws std::runtime_error when tasks remain that never became
/// ready (a deadlock in the graph).
using ReplayFunction = std::vector<Timeline> (*)(std::span<const ReplayRequest> requests);

/// Transfers never share bandwidth: each has its links for itself. A recurrence along program order, without an event
/// queue.
std::vector<Timeline> replay_analytic(std::span<const ReplayRequest> requests);

/// Concurrent transfers share their links max-min fairly. SimGrid carries those that meet on a full link, in a forked
/// child, since it runs one platform per process; where none do, it is not started.
std::vector<Timeline> replay_simgrid(std::span<const ReplayRequest> requests);

/// The same times, to the last bit, without SimGrid, several times as fast: flows that meet are shared out by ourselves
/// with the sums that SimGrid takes (docs/decisions/0031-the-sums-of-simgrid.md).
std::vector<Timeline> replay_max_min(std::span<const ReplayRequest> requests);

/// As replay_simgrid() with all transfers in SimGrid, and computations as Execs on hosts with speed profiles: SimGrid
/// integrates the speeds that the other engines integrate themselves. Each request with speed changes needs a child of
/// its own, because their dates are absolute.
std::vector<Timeline> replay_simgrid_full(std::span<const ReplayRequest> requests);

} // namespace stagecraft
