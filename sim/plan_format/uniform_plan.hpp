// Plans that all stages, ranks and replicas share alike, as frameworks can say them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "sim/plan_format/plan_formats.hpp"
#include "sim/workload/config/config_format.hpp"

namespace stagecraft {

/// Sizes of groups, and the letters of each stage: "Ett|ttL".
struct UniformPlan {
  int devices = 1, ranks = 1, replicas = 1, micro_batch_size = 1;
  std::string layout;
};

/// The sizes and the layout of a plan, or why `form`, a framework, cannot have it.
std::variant<UniformPlan, Infeasible> uniform_plan(const PlanToWrite& what, std::string_view form);

/// The plan and its training in a framework's own configuration, or why that cannot say it. The text has been read back
/// and its degrees compared with the plan's.
WrittenConfig write_config(const ConfigFormat& format, const PlanToWrite& what);

} // namespace stagecraft
