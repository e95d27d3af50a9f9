// A minimum of a function of few unknowns that need not be smooth.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace stagecraft {

/// The least value of `cost` found over unknowns in [0, largest_i] by grids of five points per unknown, each grid
/// around the best point of the one before and smaller. Deterministic; 5^n calls a grid, so for n up to 3.
std::vector<double> least_on_grids(const std::function<double(std::span<const double>)>& cost,
                                   std::span<const double> largest);

} // namespace stagecraft
