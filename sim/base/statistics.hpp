// Statistics of samples: quantiles, rank correlation, the largest of many.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

namespace stagecraft {

/// The q-quantile, 0 <= q <= 1, linear between neighbours (Hyndman and Fan 1996, type 7). NaN for no values and with a
/// NaN.
double quantile(std::vector<double> values, double q);

/// Spearman's rank correlation, equal values sharing the mean of their ranks. Nothing for fewer than three pairs,
/// where one side does not vary, and where a value is NaN.
std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b);

/// The mean of the largest of `count` draws, 1 or more, of a standard normal distribution.
double expected_largest(int count);

/// Standard deviation divided by the median, for a normal distribution with these quartiles.
inline double relative_spread(double q1, double median, double q3) {
  constexpr double kQuartilesApart = 1.349; // distance of the quartiles in standard deviations
  return (q3 - q1) / kQuartilesApart / median;
}

} // namespace stagecraft
