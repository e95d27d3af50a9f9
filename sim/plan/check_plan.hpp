// Whether a plan is valid, and whether it fits on the devices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/estimate.hpp"

namespace stagecraft {

/// The first stage on several devices with an operator that may not be replicated, in words; or "".
std::string replicated_indivisible(const Plan& plan, const ModelGraph& model);

/// Every defect of a plan's shape, in words; none: each operator is in exactly one stage, data flows from earlier to
/// later stages only (so stages are convex; where one is not, the path on which data leaves it and comes back is
/// named), devices exist and are listed once per stage, shares are positive and add up to 1, degrees are supported,
/// operators that may not be replicated are not.
std::vector<std::string> plan_defects(const Plan& plan, const ModelGraph& model, const Platform& platform);

/// The first operator of a plan whose device lacks its kernel, in words as of one stage; or "".
std::string missing_kernel(const Problem& problem, const Plan& plan);

/// The device that lacks most memory for a plan: with the schedule's counts where a named schedule can run the plan's
/// shape, with all micro-batches in flight otherwise.
std::optional<MemoryShortage> plan_shortage(const Problem& problem, const Plan& plan, int chunks,
                                            const std::function<double(int, int)>& in_flight, int versions,
                                            StagePlacement placement = StagePlacement::interleaved);

} // namespace stagecraft
