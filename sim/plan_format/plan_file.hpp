// Plan files: the YAML that `plan` writes, by hand or by another tool, and that --plan reads. docs/formats/plan.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/plan/stage_costs.hpp"

namespace stagecraft {

/// Reads a plan; operators and devices are named. Throws InputError at unknown names and keys; whether the plan is
/// valid is check_plan's to say.
Plan read_plan(const yaml::Node& document, const ModelGraph& model, const Platform& platform);

/// Figures that go with a plan.
struct PlanFigures {
  Seconds bottleneck, estimate, lower_bound;
  double planning_seconds = 0;
};

/// The plan as JSON or as the YAML of a plan file, with its figures; `timing` false leaves out the planning time.
std::string plan_to_json(const Plan& plan, const PlanCost& cost, const PlanFigures& figures, const ModelGraph& model,
                         const Platform& platform, bool timing);
std::string plan_to_yaml(const Plan& plan, const ModelGraph& model, const Platform& platform);

} // namespace stagecraft
