// The third step of a run: from a plan and its order to the task graph, with its transfers and loads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "sim/schedule/task_graph/task_graph.hpp"
#include "sim/study/study_costs.hpp"

namespace stagecraft {

/// A plan on the ranks of its schedule, with what it costs there.
struct OrderedPlan {
  Plan plan;
  PlanCost cost;
  Schedule schedule;
  std::vector<int> rank_of; ///< as in PlacedPlan; empty for the list schedule
};

/// What is said in place of the study.
struct GraphChoice {
  std::optional<StepMode> step = std::nullopt;
  std::optional<ExchangeTasks> exchanges = std::nullopt;
};

/// A graph to replay; or why its loader cannot feed it.
std::variant<TaskGraph, Infeasible> graph_of(StudyCosts& costs, const Problem& problem, const OrderedPlan& ordered,
                                             const GraphChoice& choice = {});

/// Whether the task graph of this many micro-batches is small enough for memory.
bool is_replayable(const Study& study, int micro_batches);

} // namespace stagecraft
