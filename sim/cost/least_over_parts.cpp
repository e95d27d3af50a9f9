// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/least_over_parts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

namespace stagecraft {
namespace {

constexpr double kTolerance = 0.005;
constexpr double kNarrow = 1.001; // a range of sizes that is not cut any more
constexpr int kMostLooks = 2000;

struct Open {
  PartRange range;
  double bound = 0;

  bool operator<(const Open& other) const { return bound > other.bound; } // the least comes first in a queue
};

bool is_narrow(const PartRange& range) {
  return range.least_degree == range.most_degree && range.high <= range.low * kNarrow;
}

// Two halves on a scale of ratios, across the wider of sizes and degrees.
std::pair<PartRange, PartRange> halves(const PartRange& range) {
  std::pair<PartRange, PartRange> two{range, range};
  const double sizes = range.low > 0 ? range.high / range.low : std::numeric_limits<double>::infinity();
  const double degrees = (range.most_degree + 1.0) / range.least_degree;
  if (range.most_degree > range.least_degree && (degrees >= sizes || std::isinf(sizes))) {
    const auto middle = static_cast<int>(std::sqrt(static_cast<double>(range.least_degree) * range.most_degree));
    two.first.most_degree = std::clamp(middle, range.least_degree, range.most_degree - 1);
    two.second.least_degree = two.first.most_degree + 1;
  } else {
    two.first.high = two.second.low = range.low > 0 ? std::sqrt(range.low * range.high) : range.high / 2;
  }
  return two;
}

} // namespace

double least_over_parts(const PartRange& all, const std::function<double(const PartRange&)>& bound_of) {
  double value = std::numeric_limits<double>::infinity(); // the least that the function was seen to take
  std::priority_queue<Open> open;
  double narrow = value; // the least bound of ranges that are not cut any more
  int looks = 0;
  const auto look = [&](const PartRange& range) {
    const PartRange corner{range.high, range.high, range.least_degree, range.least_degree};
    value = std::min(value, bound_of(corner));
    const double bound = bound_of(range);
    looks += 2;
    if (is_narrow(range)) {
      narrow = std::min(narrow, bound);
    } else {
      open.push({range, bound});
    }
  };
  look(all);
  while (!open.empty() && looks < kMostLooks) {
    const Open first = open.top();
    if (first.bound >= std::min(narrow, value * (1 - kTolerance))) {
      break;
    }
    open.pop();
    const auto [one, other] = halves(first.range);
    look(one);
    look(other);
  }
  return open.empty() ? narrow : std::min(narrow, open.top().bound);
}

} // namespace stagecraft
