// Fitting power as a function of arithmetic and data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/platform/fits/measurements.hpp"

namespace stagecraft::fit {

/// Non-negative least squares over states below the cap, which is the largest power measured. Nothing without an idle
/// and a busy state. With three or more busy states, the error is that of each state predicted from the others.
std::optional<PowerFit> fit_power(const std::vector<MeasuredPower>& states);

} // namespace stagecraft::fit
