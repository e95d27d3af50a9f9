// Charts of a validation: predicted against measured, the size of errors, and how well runs are ranked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/report/chart.hpp"
#include "sim/report/validation.hpp"

namespace stagecraft {

/// For each metric `predicted-METRIC` and `errors-METRIC`, and for each contest of at least three rows
/// `ranking-CONTEST`. Colours distinguish contests or, where there are none, groups.
std::vector<Chart> charts_of(const Validation& validation);

} // namespace stagecraft
