// What of a plan from elsewhere, and of the training beside it, is not carried out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/plan/plan.hpp"

namespace stagecraft {

/// The plan's own note, and the recompute that the training asks for where the plan, which decides it, does otherwise;
/// joined by semicolons, "" where there is nothing to say.
std::string plan_notes(const Plan& plan, const ModelGraph& model, const Training& training);

} // namespace stagecraft
