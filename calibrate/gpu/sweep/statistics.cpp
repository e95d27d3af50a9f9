// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/sweep/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace stagecraft::gpu {
namespace {

double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

} // namespace

Summary summarize(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  Summary summary;
  summary.median = quantile(samples, 0.5);
  summary.q1 = quantile(samples, 0.25);
  summary.q3 = quantile(samples, 0.75);
  summary.least = samples.front();
  summary.samples = static_cast<int>(samples.size());
  return summary;
}

double relative_error(const Summary& summary) {
  constexpr double kQuartilesOfNormal = 1.349; // distance of the quartiles in standard deviations
  const double sigma = (summary.q3 - summary.q1) / kQuartilesOfNormal;
  return summary.median > 0 ? 1.2533 * sigma / std::sqrt(static_cast<double>(summary.samples)) / summary.median : 0;
}

bool enough(const StopRule& rule, const std::vector<double>& samples, double elapsed) {
  const auto taken = static_cast<int>(samples.size());
  if (taken >= rule.most) {
    return true;
  }
  if (elapsed >= rule.seconds) {
    return taken >= rule.least_slow;
  }
  return taken >= rule.least && relative_error(summarize(samples)) < rule.error;
}

} // namespace stagecraft::gpu
