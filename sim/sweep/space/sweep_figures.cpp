// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/space/sweep_figures.hpp"

#include <algorithm>
#include <cmath>

namespace stagecraft {
namespace {

// Rounds to twelve significant digits: more than any engine's accuracy, and shorter to store.
double rounded(double value) {
  constexpr double kAll = 1e12; // integers below it have at most twelve digits
  if (!std::isfinite(value) || (value == std::floor(value) && std::abs(value) < kAll)) {
    return value;
  }
  static constexpr std::array kTens = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                       1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  // Powers of ten up to 1e22 are exact, so scaling by one of them adds only its own rounding.
  const double amount = std::abs(value);
  std::size_t places = 0; // after the point, or before it in large numbers
  if (amount >= kAll) {
    while (places + 1 < kTens.size() && amount / kTens[places] >= kAll) {
      ++places;
    }
    return std::round(value / kTens[places]) * kTens[places];
  }
  while (places + 1 < kTens.size() && amount * kTens[places] < kAll / 10) {
    ++places;
  }
  return std::round(value * kTens[places]) / kTens[places];
}

} // namespace

Figures figures_of(const Prepared& prepared) {
  Figures values{};
  for (std::size_t i = 0; i < kFigures; ++i) {
    const Metric& row = figures()[i];
    const bool is_stages = row.name == metric("stages").name; // a run without names has no list of stages
    values.at(i) = rounded(is_stages ? static_cast<double>(prepared.plan.stages.size()) : value_of(row, prepared.run));
  }
  return values;
}

double figure(const Figures& values, std::string_view name) {
  const auto row =
      std::find_if(figures().begin(), figures().end(), [&](const Metric& one) { return one.name == name; });
  return values.at(static_cast<std::size_t>(row - figures().begin()));
}

} // namespace stagecraft
