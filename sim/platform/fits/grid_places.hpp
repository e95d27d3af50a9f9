// Positions on the axes of a residual grid, and its values between nodes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "sim/platform/fits/kernel_features.hpp"
#include "sim/platform/fits/kernel_fits.hpp"

namespace stagecraft {

/// The position of a value between two grid nodes; values beyond the ends count as the end node.
struct GridPlace {
  std::size_t below;
  double above_share;
};

/// A place on each axis of a grid.
using GridPlaces = std::array<GridPlace, kMostGridAxes>;

/// Where a value lies on an axis.
inline GridPlace place_of(const std::vector<double>& nodes, double value) {
  if (nodes.size() == 1 || value <= nodes.front()) {
    return {0, 0};
  }
  if (value >= nodes.back()) {
    return {nodes.size() - 2, 1};
  }
  const auto above = std::upper_bound(nodes.begin(), nodes.end(), value);
  const auto below = above - 1;
  return {static_cast<std::size_t>(below - nodes.begin()), (value - *below) / (*above - *below)};
}

/// Multilinear interpolation at places on the axes, one axis after the other. `offset` is the number of the node chosen
/// by the axes before.
inline double interpolate(const ResidualGrid& grid, const GridPlaces& places, std::size_t axis = 0,
                          std::size_t offset = 0) {
  if (axis == grid.axes.size()) {
    return grid.values[offset];
  }
  const GridPlace place = places[axis];
  const std::size_t first = offset * grid.axes[axis].nodes.size() + place.below;
  const double below = place.above_share < 1 ? interpolate(grid, places, axis + 1, first) : 0;
  const double above = place.above_share > 0 ? interpolate(grid, places, axis + 1, first + 1) : 0;
  return below * (1 - place.above_share) + above * place.above_share;
}

} // namespace stagecraft
