// The stages of a plan with names and as JSON, the same in results and in plans.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/plan/stage_cost/stage_costs.hpp"
#include "sim/result/run.hpp"

namespace stagecraft {

/// The stages of a plan with names; `cost` is the plan's.
std::vector<RunStage> describe_stages(const ModelGraph& model, const Platform& platform, const Plan& plan,
                                      const PlanCost& cost);

/// {operators, devices, [shares], tensor_parallel, recompute, [recomputed], chunk, seconds}.
nlohmann::ordered_json to_value(const RunStage& stage);

} // namespace stagecraft
