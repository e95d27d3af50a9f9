// What holds a run back: where its iteration time goes, what its critical path is made of, and what would help most.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/analysis/communication.hpp"
#include "sim/platform/slowest_device.hpp"
#include "sim/replay/replay.hpp"
#include "sim/replay/what_if/sensitivities.hpp"

namespace stagecraft {

/// A run to explain, replayed or real, and the engine to replay it with again.
struct ExplainRequest {
  const TaskGraph& graph;
  const Timeline& timeline;
  const Platform& platform;
  ReplayFunction engine = replay_simgrid;
  /// The same graph folded, on which faster parts of many are replayed in place of `graph`, and single ones are not
  /// looked at; null: there is none, or the whole is small.
  const TaskGraph* folded = nullptr;
  std::vector<SlowestDevice> slowest{}; ///< of each type, where the times of computations are those of slowest devices
};

/// A piece of the iteration time.
struct TimeShare {
  std::string cause;
  Seconds time;
};

/// Steps of the critical path that do the same thing.
struct PathShare {
  std::string what;
  Seconds time;
  double steps = 0; ///< tasks per iteration, on average
};

/// What would hold the run back next if a part were faster.
struct NextBottleneck {
  std::string mended; ///< the part
  double factor = 1;  ///< times as fast: doubled until another part helps more, at most 16
  Seconds iteration;
  std::vector<Sensitivity> sensitivities; ///< with that part faster; ranked as in Explanation
};

struct Explanation {
  Seconds iteration;
  /// Adds up to the iteration. First the mean time that devices compute; then by how much the replay gets longer with
  /// each cause of idle time, added one after the other: fill and drain of the schedule, unequal stages, transfers that
  /// share no link, gradient reduction, sharing of links, the loader. A negative piece means that one cause hides
  /// another.
  std::vector<TimeShare> shares;
  std::vector<Communication> communication;
  std::vector<PathShare> path;            ///< longest first; adds up to the iteration
  std::vector<Sensitivity> sensitivities; ///< the most helpful first
  std::vector<NextBottleneck> next;       ///< with the most helpful part faster, then the next one too
  std::vector<SlowestDevice> slowest;     ///< of each type, where all wait for it
};

/// Replays the graph some dozens of times, with plan and order unchanged. Deterministic.
Explanation explain(const ExplainRequest& request);

/// An explanation in sentences; every number in them is computed.
std::vector<std::string> summary_of(const Explanation& explanation);

/// Tables for a terminal.
std::string to_text(const Explanation& explanation, bool color);
/// The value of key `explanation`, docs/formats/results.md.
std::string to_json(const Explanation& explanation);

} // namespace stagecraft
