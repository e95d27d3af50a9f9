// The plans of many scenarios, found on all cores before the runs are prepared one after another.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/study/compare/prepare.hpp"

namespace stagecraft {

/// Plans each scenario, so that the memo has the plan when prepare() asks. With more than one worker in forked
/// children, each of which plans for one strategy and number of micro-batches at a time: answers are the same for any
/// number of workers. `progress`, where given, hears how many scenarios of how many are done.
void plan_ahead(StudyMemo& memo, const std::vector<Scenario>& scenarios, int workers,
                const ProgressCall& progress = {});

/// Likewise looks for the change that would make each scenario fit (fit_changes.hpp), one strategy at a time.
void find_changes_ahead(StudyMemo& memo, const std::vector<Scenario>& scenarios, int workers,
                        const ProgressCall& progress = {});

} // namespace stagecraft
