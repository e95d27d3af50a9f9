// Cuts of pipelines over tensor-parallel groups.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "sim/plan/plan.hpp"
#include "sim/plan/problem.hpp"

namespace stagecraft {

/// The plan with every cut moved behind which a tensor group computes whole what it divides in the whole model: the
/// queries' product divides attention's heads, and where it is in the stage before, each rank computes all of them. A
/// planner over groups sees each operator as the group has it in the whole model, so it does not see what such a cut
/// costs, and no framework has one. The cut moves before that product or behind what it divides, whichever
/// estimate_iteration() says is better; where either would leave a stage empty, the other; where both would, it stays.
/// The note says how many moved. Nothing where none does: without tensor groups, where stages are no intervals, where a
/// rule searches for how each stage is shared, and where the plan was measured round by round.
std::optional<Plan> mend_cuts(const Problem& problem, const Plan& plan);

} // namespace stagecraft
