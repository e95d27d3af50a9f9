// What holds a run back: where its iteration time goes, what its critical path is made of, and what would help most.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/analysis/explain_parts.hpp"
#include "sim/replay/replay.hpp"

namespace stagecraft {

/// A run to explain: what was replayed, or really ran, and by which engine it is replayed again.
struct ExplainRequest {
  const TaskGraph& graph;
  const Timeline& timeline;
  const Platform& platform;
  ReplayFunction engine = replay_simgrid;
};

/// A piece of the iteration time.
struct TimeShare {
  std::string cause;
  Seconds time;
};

/// Steps of the critical path that do the same.
struct PathShare {
  std::string what;
  Seconds time;
  double steps = 0; ///< tasks, in the mean of the iterations
};

/// How long an iteration takes when one part of the cluster is faster.
struct Sensitivity {
  std::string part;
  Seconds iteration;
};

/// What would hold back next, were a part faster.
struct NextBottleneck {
  std::string mended; ///< the part
  double factor = 1;  ///< so many times as fast: doubled until another part helps more, 16 at most
  Seconds iteration;
  std::vector<Sensitivity> sensitivities; ///< from there, ranked; as in Explanation
};

struct Explanation {
  static constexpr double kFaster = 1.1; ///< parts, in sensitivities

  Seconds iteration;
  /// Adds up to the iteration. First what devices compute, in the mean; then by how much the replay gets longer with
  /// each thing that keeps them from it, added in turn: the order of the schedule, unequal stages, transfers that meet
  /// nobody, gradient reduction, sharing of links, the loader. A piece below 0 says that one hides another.
  std::vector<TimeShare> shares;
  std::vector<PathShare> path;            ///< longest first; adds up to the iteration
  std::vector<Sensitivity> sensitivities; ///< the most helpful first
  std::vector<NextBottleneck> next;       ///< with the most helpful part mended, then the next one too
};

/// Replays the graph some dozens of times; plan and order stay as they are. Deterministic.
Explanation explain(const ExplainRequest& request);

/// Sentences on an explanation, every number computed.
std::vector<std::string> summary_of(const Explanation& explanation);

/// Tables for a terminal.
std::string to_text(const Explanation& explanation, bool color);
/// The value of key `explanation`, docs/formats/results.md.
std::string to_json(const Explanation& explanation);

} // namespace stagecraft
