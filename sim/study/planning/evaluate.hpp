// Tries out a plan, for planners that search and for the policies of `adapt`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "sim/plan/estimate/plan_request.hpp"
#include "sim/study/scenario.hpp"
#include "sim/study/study_costs.hpp"

namespace stagecraft {

class KnownStages;

/// What the engine `analytic` measures of a plan under a scenario's schedule, micro-batches and choice of recompute.
/// `known`: where costs of stages may be found, if they are kept.
Evaluation evaluate(StudyCosts& costs, const Plan& plan, const Scenario& under, KnownStages* known = nullptr);

/// What the study's own engine measures of plans, replayed together.
std::vector<Evaluation> evaluate_on_engine(StudyCosts& costs, std::span<const Plan> plans, const Scenario& under);

/// What the study's engine measures of a plan when device d of the platform computes speeds[d] times as fast as its
/// type says: one evaluation for each list of speeds. The noise is 0.
std::vector<Evaluation> evaluate_at(StudyCosts& costs, const Plan& plan, const ScheduleRow& schedule, int micro_batches,
                                    std::span<const std::vector<double>> speeds);

} // namespace stagecraft
