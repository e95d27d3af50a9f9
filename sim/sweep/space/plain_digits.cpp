// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/space/plain_digits.hpp"

#include <cmath>

#include "sim/base/units.hpp"

namespace stagecraft {

std::string plain_digits(double value, int digits) {
  constexpr double kSmallest = 1e-30;
  std::string text = to_digits(value, digits);
  const double amount = std::abs(value);
  if (text.find('e') == std::string::npos || amount < kSmallest) {
    return text;
  }
  if (amount >= 1) {
    return to_text(value, 0);
  }
  const int zeros = -static_cast<int>(std::floor(std::log10(amount))) - 1; // after the point
  const std::string all = to_text(value, zeros + digits);
  return all.substr(0, all.find_last_not_of('0') + 1);
}

} // namespace stagecraft
