// The figures of a point: one row of a table each, from which columns, exports and docs come.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "sim/study/simulator.hpp"

namespace stagecraft {

struct FigureRow {
  std::string_view name, unit, help;
  double (*of)(const Prepared& prepared); ///< of a feasible run; NaN: it has none
};
inline constexpr std::size_t kFigures = 25;
std::span<const FigureRow, kFigures> figures();

using Figures = std::array<double, kFigures>;
Figures figures_of(const Prepared& prepared);
/// Whether closed forms alone tell a figure, by the name of its row.
bool is_estimated(std::string_view name);
/// One of them, by the name of its row.
double figure(const Figures& values, std::string_view name);

} // namespace stagecraft
