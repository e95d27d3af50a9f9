// SPDX-License-Identifier: Apache-2.0
#include "sim/base/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace stagecraft {

namespace {

// NaN has no place in an order: sorting and ranking are undefined with it.
bool has_nan(const std::vector<double>& values) {
  return std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
}

} // namespace

double quantile(std::vector<double> values, double q) {
  if (values.empty() || has_nan(values)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

namespace {

std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first;
    while (end < order.size() && values[order[end]] == values[order[first]]) {
      ++end;
    }
    for (std::size_t i = first; i < end; ++i) {
      ranks[order[i]] = 0.5 * static_cast<double>(first + end - 1);
    }
    first = end;
  }
  return ranks;
}

} // namespace

std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr std::size_t kLeast = 3;
  if (a.size() < kLeast || has_nan(a) || has_nan(b)) {
    return std::nullopt;
  }
  const std::vector<double> x = ranks_of(a);
  const std::vector<double> y = ranks_of(b);
  const double mean = 0.5 * static_cast<double>(a.size() - 1);
  double xy = 0;
  double xx = 0;
  double yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? std::optional(xy / std::sqrt(xx * yy)) : std::nullopt;
}

// A mean is the integral of what lies above x over positive x, less that of what lies below over negative ones; the
// largest lies below x where all do.
double expected_largest(int count) {
  constexpr double kEnd = 9, kStep = 1e-3; // beyond lies less than 1e-18
  constexpr int kSteps = static_cast<int>(kEnd / kStep);
  const auto all_below = [&](double x) { return std::pow(0.5 * std::erfc(-x / std::sqrt(2.0)), count); };
  double mean = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double x = (i + 0.5) * kStep;
    mean += kStep * (1 - all_below(x) - all_below(-x));
  }
  return mean;
}

} // namespace stagecraft
