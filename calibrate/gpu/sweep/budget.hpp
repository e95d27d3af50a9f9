// How a run's time is shared out: each group gets its share of what is left, and hands on what it does not use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace stagecraft::gpu {

/// Shares out `total` seconds over groups of the given weights, in their order. Times are seconds since the start.
class Budget {
public:
  Budget(double total, std::vector<double> weights);

  /// Until when group `index`, which begins at `now`, may take new points: its weight's share of the time left among
  /// itself and those after it.
  double deadline(std::size_t index, double now) const;

  double total() const { return total_; }

private:
  double total_;
  std::vector<double> weights_;
};

} // namespace stagecraft::gpu
