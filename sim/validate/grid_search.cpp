// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/grid_search.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

constexpr int kPoints = 5; // per unknown: two to either side
constexpr int kGrids = 24;
constexpr double kShrink = 0.6; // more than half, so that a minimum just outside the next grid is not lost

} // namespace

std::vector<double> least_on_grids(const std::function<double(std::span<const double>)>& cost,
                                   std::span<const double> largest) {
  std::vector<double> best(largest.begin(), largest.end());
  std::vector<double> step; // between neighbouring points
  std::size_t count = 1;
  for (double& value : best) {
    value /= 2;
    step.push_back(value / 2);
    count *= kPoints;
  }
  double least = cost(best);
  std::vector<double> point(best.size());
  for (int grid = 0; grid < kGrids; ++grid) {
    const std::vector<double> center = best;
    for (std::size_t index = 0; index < count; ++index) {
      std::size_t rest = index;
      for (std::size_t i = 0; i < point.size(); ++i) {
        const int offset = static_cast<int>(rest % kPoints) - kPoints / 2;
        rest /= kPoints;
        point[i] = std::clamp(center[i] + offset * step[i], 0.0, largest[i]);
      }
      if (const double value = cost(point); value < least) {
        least = value;
        best = point;
      }
    }
    for (double& width : step) {
      width *= kShrink;
    }
  }
  return best;
}

} // namespace stagecraft
