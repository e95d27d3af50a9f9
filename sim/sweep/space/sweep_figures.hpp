// The figures of a point: the metrics that have a column there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "sim/result/metrics_table.hpp"
#include "sim/study/scenario.hpp"

namespace stagecraft {

inline constexpr auto kFigureRows = metrics_by<&Metric::point>();
inline constexpr std::size_t kFigures = kFigureRows.size();
constexpr std::span<const Metric, kFigures> figures() { return kFigureRows; }

using Figures = std::array<double, kFigures>;
/// The figures of a feasible run; NaN where it has none.
Figures figures_of(const Prepared& prepared);
/// One of them, by the name of its row.
double figure(const Figures& values, std::string_view name);

} // namespace stagecraft
