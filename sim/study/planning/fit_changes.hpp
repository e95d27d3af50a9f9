// Which change would let a scenario run whose plan does not fit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/study/planning/study_memo.hpp"
#include "sim/study/scenario.hpp"

namespace stagecraft {

/// Whether a change is looked for if the scenario has no plan: the study wants it, and orders from elsewhere are for
/// the scenario's number of micro-batches.
bool looks_for_change(const Scenario& scenario);

/// Tries more micro-batches of the same batch, then full recompute with the scenario's micro-batches, then, where the
/// strategy takes given degrees, that replicas share more, or twice the tensor or pipeline degree, then more memory.
/// Returns the first change that fits, in words; "" where none does. The memo keeps it.
std::string smallest_fitting_change(StudyMemo& memo, const Scenario& scenario);

/// Tells the memo what another process found.
void keep_fitting_change(StudyMemo& memo, const Scenario& scenario, std::string change);

} // namespace stagecraft
