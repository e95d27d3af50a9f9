// Strategies that other strategies ask for a plan to start from, to measure themselves against, or to fall back on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/plan/estimate/plan_request.hpp"

namespace stagecraft {

PlanResult split_data_parallel(const PlanRequest& request);
PlanResult split_uniform(const PlanRequest& request);
PlanResult split_parameters(const PlanRequest& request);
PlanResult split_block_partition(const PlanRequest& request);
PlanResult split_capability(const PlanRequest& request);
PlanResult split_capability_refined(const PlanRequest& request);

} // namespace stagecraft
