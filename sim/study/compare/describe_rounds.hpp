// Rounds of dynamic balancing with names in place of numbers, as results show them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/result/run.hpp"

namespace stagecraft {

std::vector<RunRound> describe_rounds(const std::vector<BalanceRound>& rounds, const ModelGraph& model,
                                      const Platform& platform);

} // namespace stagecraft
