// The second half of a run: its replay and its figures. The first half is prepare.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "sim/study/planning/study_memo.hpp"
#include "sim/study/scenario.hpp"

namespace stagecraft {

/// Replays what was prepared, in one batch, and fills in the figures, which are the same for any number of workers.
void replay(StudyCosts& costs, std::vector<Prepared>& prepared, int workers = 1);

/// The same in two halves, so that one batch may hold the work of several studies. The first half lists the replays;
/// the second takes their timelines in the same order, and replays again what was not steady. Each replay took
/// `seconds`.
std::vector<ReplayRequest> replay_requests(const Study& study, const std::vector<Prepared>& prepared);
void take_timelines(StudyCosts& costs, std::vector<Prepared>& prepared, std::span<Timeline> timelines, double seconds,
                    int workers = 1);

/// The graph whose replay the run's timeline is: the prepared one, or a draw of it whose replicas have drifted apart.
TaskGraph replayed_graph(const Study& study, const Prepared& prepared);

/// The same with every device of its plan, whether or not it was folded.
TaskGraph whole_graph(StudyCosts& costs, const Prepared& prepared);

/// That graph and its timeline, for whoever looks at devices one by one.
struct WholeRun {
  TaskGraph graph;
  Timeline timeline;
};
WholeRun whole_run(StudyCosts& costs, const Prepared& prepared);

/// One scenario from end to end: prepared and replayed; where it is one `of_many`, as those are (Replayer::for_many).
Prepared run_scenario(StudyMemo& memo, const Scenario& scenario, bool of_many = false);

/// Whether so many iterations of a graph are more tasks than are replayed once for each of many questions.
bool is_long(const TaskGraph& graph, int iterations);

/// The folded graph of a run that is long, or on more devices than results list one by one, to be replayed where each
/// device's own figures are no matter; null: it is not folded, or neither.
const TaskGraph* folded_of(const Prepared& prepared, const WholeRun& whole);

} // namespace stagecraft
