// How long a graph is replayed and over which period it is measured, whoever asks.
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

/// The last iterations that are measured: one, but several where there is a loader, of which whole cycles, or where
/// iterations overlap.
int window_of(const TaskGraph& graph);

/// Figures of a timeline of so many iterations, over the window.
Metrics measure_window(const Study& study, const TaskGraph& graph, Timeline timeline);
/// The same by the engine `analytic`.
Metrics measure_analytic(const Study& study, const TaskGraph& graph);

/// Which devices overflow, at which task and by how much.
std::vector<std::string> memory_overflows(const Platform& platform, const TaskGraph& graph, const Metrics& metrics);

/// What planners are told of figures; or which device overflows first.
Evaluation evaluation_of(const Platform& platform, const TaskGraph& graph, const Metrics& metrics);

} // namespace stagecraft
