// The second half of a run: replay of what was prepared, and its figures. The first half is prepare.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "sim/study/scenario.hpp"
#include "sim/study/study_memo.hpp"

namespace stagecraft {

/// Replays what was prepared, in one batch, and fills in the figures.
void replay(StudyCosts& costs, std::vector<Prepared>& prepared);

/// The same in two halves, so that a batch may hold the work of several studies: what is to replay, in the order of the
/// timelines that the other half takes. Each replay took `seconds`.
std::vector<ReplayRequest> replay_requests(const Study& study, const std::vector<Prepared>& prepared);
void take_timelines(StudyCosts& costs, std::vector<Prepared>& prepared, std::span<Timeline> timelines, double seconds);

/// One scenario from end to end: prepared and replayed.
Prepared run_scenario(StudyMemo& memo, const Scenario& scenario);

} // namespace stagecraft
