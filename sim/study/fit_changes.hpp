// Which change would let a scenario run whose plan does not fit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/study/scenario.hpp"
#include "sim/study/study_memo.hpp"

namespace stagecraft {

/// Tries more micro-batches of the same batch, then full recompute with the scenario's micro-batches, then more memory.
/// Returns the first change that fits, in words; "" where none does.
std::string smallest_fitting_change(StudyMemo& memo, const Scenario& scenario);

} // namespace stagecraft
