// The first half of a run: plan, order and task graph of each scenario. The other half is replay_prepared.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "sim/study/planning/study_memo.hpp"
#include "sim/study/scenario.hpp"

namespace stagecraft {

using ProgressCall = std::function<void(std::size_t done, std::size_t all)>;

/// Plans, orders and builds task graphs; scenarios with equal plans and orders share one graph.
std::vector<Prepared> prepare(StudyMemo& memo, const std::vector<Scenario>& scenarios);

} // namespace stagecraft
