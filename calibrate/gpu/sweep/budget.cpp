// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/sweep/budget.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace stagecraft::gpu {

Budget::Budget(double total, std::vector<double> weights) : total_(total), weights_(std::move(weights)) {}

double Budget::deadline(std::size_t index, double now) const {
  const double rest = std::accumulate(weights_.begin() + static_cast<std::ptrdiff_t>(index), weights_.end(), 0.0);
  const double left = std::max(total_ - now, 0.0);
  return rest > 0 ? now + left * weights_[index] / rest : now;
}

} // namespace stagecraft::gpu
