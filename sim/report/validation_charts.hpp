// Pictures of a validation: predicted against measured, how large errors are, how well runs are ranked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/report/chart.hpp"
#include "sim/report/validation.hpp"

namespace stagecraft {

/// Per metric `predicted-METRIC` and `errors-METRIC`, and per contest of three rows or more `ranking-CONTEST`. Contests
/// are told apart by colour; where there are none, groups.
std::vector<Chart> charts_of(const Validation& validation);

} // namespace stagecraft
