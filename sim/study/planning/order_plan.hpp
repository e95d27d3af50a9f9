// The second step of a run: from a plan to the order of work on each rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>
#include <vector>

#include "sim/study/planning/make_graph.hpp"
#include "sim/study/scenario.hpp"

namespace stagecraft {

class KnownStages;

/// Whether two schedules make the same tasks of one plan.
bool same_work(const Schedule& one, const Schedule& other);

/// Whether what is alike in a plan is simulated once.
enum class Folding { off, on };

/// The plan as its schedule runs it; or why it cannot. `problem` has the costs. With folding, they are those of the
/// replicas that are simulated. `known`: where costs of stages may be found, if they are kept.
std::variant<OrderedPlan, Infeasible> order_plan(StudyCosts& costs, const Scenario& scenario, const Problem& problem,
                                                 const Plan& plan, Folding folding = Folding::off,
                                                 KnownStages* known = nullptr);

} // namespace stagecraft
