// Is this plan one at all, and does it fit here?
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/plan/plan.hpp"

namespace stagecraft {

/// The first stage of several devices that has an operator which may not be replicated, in words; or "".
std::string replicated_indivisible(const Plan& plan, const ModelGraph& model);

/// Every defect of a plan's shape, in words; none: each operator is in exactly one stage, data flows from earlier to
/// later stages only (so stages are convex; where one is not, the way by which data leaves it and comes back is named),
/// devices exist and are listed once per stage, shares are positive and add up to 1, degrees are supported, operators
/// that may not be replicated are not.
std::vector<std::string> plan_defects(const Plan& plan, const ModelGraph& model, const Platform& platform);

} // namespace stagecraft
