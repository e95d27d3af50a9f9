// The answer of a comparison, and its findings by what they change.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "sim/report/page/run_values.hpp"

namespace stagecraft {

/// The runs of a comparison: those that compete, the best first; those ranked apart; all.
struct ComparedRuns {
  std::vector<RunValues> competing, apart, all;
};

/// `document` holds the comparison. At least one run competes.
Answer comparison_answer(const nlohmann::json& document, const ComparedRuns& runs);
/// Where nothing is feasible: that, and why.
Answer infeasible_answer(const nlohmann::json& document, const ComparedRuns& runs);

/// What else there is to know, the largest change first; each sentence stands for itself.
std::vector<std::string> comparison_findings(const nlohmann::json& document, const ComparedRuns& runs);

} // namespace stagecraft
