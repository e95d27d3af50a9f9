// How many iterations a graph is replayed and over which of them it is measured, the same for every caller.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/plan/estimate/plan_request.hpp"
#include "sim/replay/replayer.hpp"
#include "sim/study/study.hpp"
#include "sim/timeline/metrics.hpp"

namespace stagecraft {

/// Iterations to replay where each stage steps by itself: the period between the last two is steady.
inline constexpr int kIterationsOfLocalStep = 4;

/// Iterations to replay: until the period is steady or, where iterations overlap, at first.
int iterations_of(const Study& study, const TaskGraph& graph);

/// The requests, which engines may stop where the period shows: for make_steady(). Where iterations overlap, up to
/// eight times as many may follow, as long as that is little work.
std::vector<ReplayRequest> until_steady(std::span<const ReplayRequest> requests);

/// Sets over how many of the last iterations each timeline is measured: one; several where there is a loader; and where
/// iterations overlap, as many as find_steady() says. Graphs whose period is not steady are replayed again over twice
/// the iterations, as long as that is little work. The timelines are those of the requests, with iterations_of()
/// iterations, or of until_steady(). Of the last iterations those are cut off in which a device has run out of work.
/// Returns how far each period may still be off, as a fraction of it; 0 where it is steady.
std::vector<double> make_steady(const Replayer& replay, std::span<const ReplayRequest> requests,
                                std::span<Timeline> timelines);

/// Replays graphs until their periods are steady.
std::vector<Timeline> replay_steady(const Replayer& replay, std::span<const ReplayRequest> requests);

/// The timeline of a graph whose equal replicas meet is replaced by that of drifted() with the median iteration, where
/// the engine lets transfers share links and the graph gains by it. Given are the requests with their steady timelines,
/// and what make_steady() returned for them, which is replaced likewise. Returns each graph's draw; -1: it stays as it
/// is.
std::vector<int> let_drift(const Study& study, const Replayer& replay, std::span<const ReplayRequest> requests,
                           std::span<Timeline> timelines, std::span<double> spreads);

/// Replays the graph on the study's platform, or one like it, until its period is steady, and measures it; let_drift()
/// holds.
Metrics measure_graph(const Study& study, const Platform& platform, const TaskGraph& graph, const Replayer& replay);
/// The same on the study's platform with the engine `analytic`.
Metrics measure_analytic(const Study& study, const TaskGraph& graph);

/// Which devices overflow, at which task and by how much.
std::vector<std::string> memory_overflows(const Platform& platform, const TaskGraph& graph, const Metrics& metrics);
/// How much more memory on every device would hold the run, as Run::would_fit says it; "" where none overflows.
std::string memory_that_fits(const Platform& platform, const TaskGraph& graph, const Metrics& metrics);
/// Which devices overflow, with a line for each stage of the plan: the device that overflows most, and how many others
/// do.
std::vector<std::string> overflows_of_stages(const Platform& platform, const Plan& plan, const TaskGraph& graph,
                                             const Metrics& metrics);

/// What planners are told of the figures; where memory overflows, which device is the first to do so.
Evaluation evaluation_of(const Platform& platform, const TaskGraph& graph, const Metrics& metrics);

} // namespace stagecraft
