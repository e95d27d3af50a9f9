// How sure a comparison is: every run repeated under drawn errors of the cost model (docs/model.md, "Confidence").
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/study/scenario.hpp"
#include "sim/study/study_costs.hpp"

namespace stagecraft {

/// Draws the cost model's errors as often as the study says. Fills in how long each feasible run takes with them, its
/// plan and order unchanged, and how often it is the fastest of its block (block_of()). Errors of one family of kernels
/// on one device type are correlated, and every run sees the same draws.
void add_confidence(StudyCosts& costs, std::vector<Prepared>& prepared);

} // namespace stagecraft
