// A minimum of a function of few unknowns; the function need not be smooth.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace stagecraft {

/// The least value of `cost` found over unknowns in [0, largest_i] by grids of five points per unknown. Each grid is
/// smaller than the one before and lies around its best point. Deterministic. A grid takes 5^n calls, so n should be at
/// most 3.
std::vector<double> least_on_grids(const std::function<double(std::span<const double>)>& cost,
                                   std::span<const double> largest);

} // namespace stagecraft
