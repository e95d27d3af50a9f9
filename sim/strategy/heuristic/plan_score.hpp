// How good a plan is to a strategy that searches.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/base/improves.hpp"
#include "sim/plan/estimate/plan_request.hpp"

namespace stagecraft {

struct PlanScore {
  double seconds = kInfinity; ///< seconds of an iteration
  std::string why_not;        ///< why the plan cannot run; "" when it can

  bool runs() const { return why_not.empty(); }
};

/// What of a plan no schedule changes: why it cannot run under any, or else what memory its stages take.
struct PlanNeeds {
  std::string why_not;
  PlanCost memory;
};
PlanNeeds needs_of(const Problem& problem, const Plan& plan);

/// Why a plan cannot run, as far as make_plan() checks it: kernels, operators that may not be replicated, memory; or
/// "".
std::string why_not(const PlanRequest& request, const Plan& plan);

/// Checks what make_plan() checks, then asks for a replay, or for estimate_iteration() without one.
PlanScore score_plan(const PlanRequest& request, const Plan& plan);
/// The same of a plan whose needs are known.
PlanScore score_plan(const PlanRequest& request, const Plan& plan, const PlanNeeds& needs);

} // namespace stagecraft
