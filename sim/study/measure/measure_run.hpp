// The last step of a run: from its timeline to its figures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/study/scenario.hpp"
#include "sim/study/study_costs.hpp"

namespace stagecraft {

/// Fills in the figures of a run that has a graph and its timeline. `alone` is the timeline of one iteration from
/// empty, for a run that has that graph too.
void measure_run(StudyCosts& costs, Prepared& prepared, const Timeline* alone);

} // namespace stagecraft
