// Random numbers that are the same on every machine; those of the standard library's distributions are not.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace stagecraft {

/// PCG32, XSH RR 64/32 (O'Neill 2014).
class Random {
public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0) : increment_(2 * stream + 1) {
    next();
    state_ += seed;
    next();
  }

  /// 0 … 2^32 - 1.
  std::uint32_t next() {
    const std::uint64_t old = state_;
    state_ = old * 6364136223846793005ULL + increment_;
    const auto shifted = static_cast<std::uint32_t>(((old >> 18U) ^ old) >> 27U);
    const auto turn = static_cast<std::uint32_t>(old >> 59U);
    return (shifted >> turn) | (shifted << ((32U - turn) & 31U));
  }

  /// 0 … bound - 1, all equally likely; bound >= 1.
  int below(int bound) {
    const auto range = static_cast<std::uint32_t>(bound);
    const std::uint32_t uneven = (0U - range) % range; // 2^32 mod range
    std::uint32_t drawn = next();
    while (drawn < uneven) {
      drawn = next();
    }
    return static_cast<int>(drawn % range);
  }

  /// At least 0, below 1, in steps of 2^-32.
  double unit() { return next() * 0x1p-32; }

  /// A draw from the standard normal distribution (Box and Muller 1958).
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - unit()));
    return radius * std::cos(2 * std::numbers::pi * unit());
  }

private:
  std::uint64_t state_ = 0;
  std::uint64_t increment_;
};

} // namespace stagecraft
