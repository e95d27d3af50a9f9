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

/// Why a plan cannot run, as far as make_plan() checks it: kernels, operators that may not be replicated, memory; or
/// "".
std::string why_not(const PlanRequest& request, const Plan& plan);

/// Checks what make_plan() checks, then asks for a replay, or for estimate_iteration() without one.
PlanScore score_plan(const PlanRequest& request, const Plan& plan);

} // namespace stagecraft
