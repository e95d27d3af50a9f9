// Whether a plan is valid, and whether it fits on the devices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/plan/estimate/estimate.hpp"

namespace stagecraft {

class KnownStages;

/// Describes the first stage that has several devices and an operator that may not be replicated; "" if there is none.
std::string replicated_indivisible(const Plan& plan, const ModelGraph& model);

/// Describes every defect of a plan's shape. A plan has none if each operator is in exactly one stage, data flows from
/// earlier to later stages only, devices exist and are listed once per stage, shares are positive and add up to 1,
/// tensor degrees divide the number of devices, recomputed operators belong to their stage, and operators that may not
/// be replicated are not. The stages are then convex; for one that is not, the path on which data leaves it and comes
/// back is named.
std::vector<std::string> plan_defects(const Plan& plan, const ModelGraph& model, const Platform& platform);

/// Describes the first operator of a plan whose device lacks its kernel, in the words that problem.hpp has for one
/// stage; "" if there is none.
std::string missing_kernel(const Problem& problem, const Plan& plan);

/// The device that lacks most memory for a plan. The micro-batches in flight are the schedule's if a named schedule can
/// run a plan of this shape, and all micro-batches otherwise. `known`: where stages may be found, if they are kept.
std::optional<MemoryShortage> plan_shortage(const Problem& problem, const Plan& plan, int chunks,
                                            const InFlight& in_flight, int versions,
                                            StagePlacement placement = StagePlacement::interleaved,
                                            KnownStages* known = nullptr);
/// The same of a plan whose memory cost_memory() has told.
std::optional<MemoryShortage> plan_shortage(const Problem& problem, const Plan& plan, const PlanCost& memory,
                                            int chunks, const InFlight& in_flight, int versions,
                                            StagePlacement placement);

} // namespace stagecraft
