// What keeps a given plan from running.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/study/planning/study_memo.hpp"
#include "sim/study/scenario.hpp"

namespace stagecraft {

/// Everything that keeps a given plan from running under its schedule, in words: its shape, missing kernels, and memory
/// as the replay finds it.
std::vector<std::string> run_defects(StudyMemo& memo, const Scenario& scenario);

} // namespace stagecraft
