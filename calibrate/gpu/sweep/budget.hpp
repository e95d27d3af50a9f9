// Divides the time of a run among groups: each gets its share of what is left, and passes on what it does not use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace stagecraft::gpu {

/// Divides `total` seconds among groups with these weights, in this order. Times are seconds since the start.
class Budget {
public:
  Budget(double total, std::vector<double> weights);

  /// Until when group `index`, which begins at `now`, may start new points: its weight's share of the time left for it
  /// and the groups after it.
  double deadline(std::size_t index, double now) const;

  double total() const { return total_; }

private:
  double total_;
  std::vector<double> weights_;
};

} // namespace stagecraft::gpu
