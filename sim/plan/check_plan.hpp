// Is this plan one at all, and does it fit here?
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/plan/plan.hpp"

namespace stagecraft {

/// Every defect of a plan's shape, in words; none: each operator is in exactly one stage, data flows from earlier to
/// later stages only (so stages are convex), devices exist and are listed once per stage, shares are positive and add
/// up to 1, degrees are supported.
std::vector<std::string> plan_defects(const Plan& plan, const ModelGraph& model, const Platform& platform);

} // namespace stagecraft
