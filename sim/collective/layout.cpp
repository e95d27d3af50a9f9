// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/layout.hpp"

namespace stagecraft {

int Layout::ranks() const {
  int product = 1;
  for (const Dimension& dimension : dimensions) {
    product *= dimension.size;
  }
  return product;
}

int Layout::coordinate(int rank, std::size_t dimension) const {
  return rank / dimensions[dimension].stride % dimensions[dimension].size;
}

Layout make_layout(const std::vector<AxisSize>& axes) {
  Layout layout;
  int stride = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    layout.dimensions.insert(layout.dimensions.begin(), {axis->axis, axis->size, stride});
    stride *= axis->size;
  }
  return layout;
}

std::vector<int> peers_of(const Layout& layout, std::size_t dimension, int rank) {
  const auto& [axis, size, stride] = layout.dimensions[dimension];
  const int first = rank - layout.coordinate(rank, dimension) * stride;
  std::vector<int> peers;
  for (int i = 0; i < size; ++i) {
    peers.push_back(first + i * stride);
  }
  return peers;
}

} // namespace stagecraft
