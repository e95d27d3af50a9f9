// Plans that all stages, ranks and replicas share alike, as frameworks can say them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/plan_format/plan_formats.hpp"
#include "sim/workload/config/config_format.hpp"

namespace stagecraft {

/// Sizes of groups, and the letters of each stage: "Ett|ttL".
struct UniformPlan {
  int devices = 1, ranks = 1, replicas = 1, micro_batch_size = 1;
  std::string layout;
  RankOrder order = RankOrder::tensor_data_pipeline;
};

/// The sizes and the layout of a plan, or why `form`, a framework that has these orders of ranks, cannot have it.
std::variant<UniformPlan, Infeasible> uniform_plan(const PlanToWrite& what, std::string_view form,
                                                   std::span<const RankOrderRow> orders);

/// The plan as frameworks see it: stages that run again what the training says need no word of a plan, blocks that run
/// again one by one are their full recompute, and a rule by which a tensor group shares operators is that of a
/// framework, which formats look at themselves.
Plan as_frameworks_see(const PlanToWrite& what);
/// The plan for a writer of configurations; `uniform`: its sizes.
ConfigToWrite config_of(const PlanToWrite& what, const UniformPlan& uniform);

/// What a written configuration, read back, says otherwise than the training: "fp8 delayed (read back: none)", one
/// entry each. Throws InputError where it is not read at all.
std::vector<std::string> lost_in(const std::string& text, std::string_view format, const PlanToWrite& what);

/// The plan and its training in a framework's own configuration, or why that cannot say it. The text has been read back
/// and its degrees compared with the plan's.
WrittenConfig write_config(const ConfigFormat& format, const PlanToWrite& what);

} // namespace stagecraft
