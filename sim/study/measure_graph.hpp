// How many iterations a graph is replayed and over which of them it is measured, the same for every caller.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/plan/plan_request.hpp"
#include "sim/study/study.hpp"
#include "sim/timeline/metrics.hpp"

namespace stagecraft {

/// Iterations to replay until the period is steady.
int iterations_of(const Study& study, const TaskGraph& graph);

/// How many of the last iterations are measured: one, or several where there is a loader or iterations overlap; always
/// whole cycles of the graph.
int window_of(const TaskGraph& graph);

/// Figures of a timeline of iterations_of() iterations, measured over the window.
Metrics measure_window(const Study& study, const TaskGraph& graph, Timeline timeline);
/// Replays the graph with the engine `analytic` and measures it in the same way.
Metrics measure_analytic(const Study& study, const TaskGraph& graph);

/// Which devices overflow, at which task and by how much.
std::vector<std::string> memory_overflows(const Platform& platform, const TaskGraph& graph, const Metrics& metrics);

/// What planners are told of the figures; where memory overflows, which device is the first to do so.
Evaluation evaluation_of(const Platform& platform, const TaskGraph& graph, const Metrics& metrics);

} // namespace stagecraft
