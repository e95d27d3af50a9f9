// What the times of a run's computations rest on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/study/scenario.hpp"
#include "sim/study/study_costs.hpp"

namespace stagecraft {

/// For each device type in use, the shares of its computing time that rest on a profile, on fits, and so on. The run
/// must have its graph. Optimiser steps are left out: no cost model times them.
std::vector<CostBasis> cost_basis_of(StudyCosts& costs, const Prepared& prepared);

} // namespace stagecraft
