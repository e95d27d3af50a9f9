// Plan files: the YAML that the command `plan` writes and that --plan reads; also written by hand or by other tools.
// docs/formats/plan.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/plan/stage_cost/stage_costs.hpp"

namespace stagecraft {

/// Reads a plan whose operators and devices are given by name. Throws InputError for unknown names and keys; check_plan
/// decides whether the plan is valid.
Plan read_plan(const yaml::Node& document, const ModelGraph& model, const Platform& platform);

/// Figures written beside a plan.
struct PlanFigures {
  Seconds bottleneck, estimate, lower_bound;
  double planning_seconds = 0;
};

/// The plan with its figures, as JSON or as the YAML of a plan file. Without `timing` the planning time is left out.
std::string plan_to_json(const Plan& plan, const PlanCost& cost, const PlanFigures& figures, const ModelGraph& model,
                         const Platform& platform, bool timing);
std::string plan_to_yaml(const Plan& plan, const ModelGraph& model, const Platform& platform);

} // namespace stagecraft
