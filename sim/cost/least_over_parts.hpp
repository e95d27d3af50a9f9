// The least of a function over sizes and degrees by branch and bound: best first, so that the answer is proven at any
// moment and only becomes closer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace stagecraft {

/// Sizes from `low`, which may be 0 and is then left out, to `high`, on groups of `least_degree` to `most_degree`
/// devices.
struct PartRange {
  double low = 0, high = 1;
  int least_degree = 1, most_degree = 1;

  bool is_point() const { return low == high && least_degree == most_degree; }
};

/// A number that the function falls below nowhere in `all`: within 0.5 % of its least value, unless finding that takes
/// more than 2000 looks. `bound_of` gives such a number for any range; at a point it is the function's value.
double least_over_parts(const PartRange& all, const std::function<double(const PartRange&)>& bound_of);

} // namespace stagecraft
