// Makes tasks of what devices of a stage exchange in its passes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "sim/schedule/task_graph/task_graph.hpp"

namespace stagecraft {

/// Devices that exchange data, as a task graph has them.
struct GraphTeam {
  const Team* team = nullptr;
  std::int32_t device = 0;   ///< in whose name it sends: an index into TaskGraph::devices
  std::int32_t members = -1; ///< all of them that are simulated, among TaskGraph::members
  std::int32_t group = -1;   ///< the same for teams of the same devices, which are one
};

/// A pass of a replica as a task graph has it.
struct TimedPass {
  const GroupPass* pass = nullptr;
  int stage = 0;
  int kind = 0;              ///< passes of one kind meet at their exchanges
  Seconds before{}, after{}; ///< what each device computes besides, in the same task
};

/// The passes of a graph, and who exchanges data in them.
struct ExchangePlan {
  std::vector<TimedPass> passes; ///< those that Work::pass counts
  std::vector<GraphTeam> teams;
  std::map<std::pair<int, std::int32_t>, std::array<std::int32_t, kPassAxes.size()>>
      teams_of; ///< stage, device: along each axis; -1: none
};

/// Divides each computation of a pass at its exchanges. An exchange is a task that starts when the last device of the
/// team has come to it, and for which all of them wait; where an algorithm has several flows, one task each. The graph
/// as it was, with TaskGraph::undivided, where that makes more tasks than the request allows.
TaskGraph expand_exchanges(TaskGraph graph, ExchangePlan plan, const TaskGraphRequest& request);

} // namespace stagecraft
