// SPDX-License-Identifier: Apache-2.0
#include "sim/base/divisors.hpp"

#include <algorithm>

namespace stagecraft {

std::string nearest_divisors(int number, int count) {
  int below = 1;
  int above = number;
  const auto consider = [&](int divisor) {
    if (divisor < count) {
      below = std::max(below, divisor);
    } else {
      above = std::min(above, divisor);
    }
  };
  for (int i = 1; i <= number / i; ++i) {
    if (number % i == 0) {
      consider(i);
      consider(number / i);
    }
  }
  return above > count ? std::to_string(below) + " or " + std::to_string(above) : std::to_string(below);
}

} // namespace stagecraft
