// The divisors of a number, as messages name them, and its multiples.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace stagecraft {

/// The divisors of `number` next to `count`, below and above: "4 or 8", or "8" where there is none above. `number` >=
/// 1, and `count` does not divide it.
std::string nearest_divisors(int number, int count);

/// The least multiple of `step` that is `number` or more. Both >= 0, `step` >= 1.
template <class Whole> constexpr Whole round_up(Whole number, Whole step) { return (number + step - 1) / step * step; }

} // namespace stagecraft
