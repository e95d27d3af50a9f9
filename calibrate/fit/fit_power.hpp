// Fitting power by arithmetic and data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/platform/measurements.hpp"

namespace stagecraft::fit {

/// Non-negative least squares below the cap, which is the largest power measured; nothing without an idle and a busy
/// state. The error is that of each busy state by the others, where there are three or more.
std::optional<PowerFit> fit_power(const std::vector<MeasuredPower>& states);

} // namespace stagecraft::fit
