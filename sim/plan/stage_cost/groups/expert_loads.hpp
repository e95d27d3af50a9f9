// How many of a mixture's rows fall to each of the ranks that share its experts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/plan/problem.hpp"

namespace stagecraft {

/// The routing of the mixture to which an operator belongs, with its number of experts and the training's skew where it
/// has one; nothing for an operator of no mixture.
std::optional<Routing> routing_of(const Problem& problem, OperatorId op);

/// [rank]: rows that its experts keep, of all that tokens choose.
std::vector<double> kept_rows(const Routing& routing, int ranks);

/// [rank]: rows of its experts, to an equal share. The ranks have the experts in their order, in equal parts.
std::vector<double> expert_loads(const Routing& routing, int ranks);

} // namespace stagecraft
