// How sure a comparison is: every run again under drawn errors of the cost model (docs/model.md, "Confidence").
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/study/scenario.hpp"
#include "sim/study/study_costs.hpp"

namespace stagecraft {

/// Draws the cost model's errors as often as the study says and fills in how long each feasible run then takes, its
/// plan and order staying as they are, and how often it is the fastest. Errors of one family of kernels on one device
/// type go together, and every run sees the same draw.
void add_confidence(StudyCosts& costs, std::vector<Prepared>& prepared);

} // namespace stagecraft
