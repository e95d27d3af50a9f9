// One table of colours, so that a strategy has the same colour on every page.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace stagecraft {

/// The number of a strategy's colour and symbol on charts (ChartSeries::color). Strategies that are often compared have
/// colours that are easy to tell apart; a plan from a file has one that follows from its name.
int strategy_color(std::string_view strategy);

} // namespace stagecraft
