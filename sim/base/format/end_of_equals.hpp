// Lists of numbers in which equal ones follow one another.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace stagecraft {

/// Where the run of numbers equal to the first one ends; the range must not be empty. It looks at a block of numbers at
/// a time, which compilers turn into a few wide instructions.
inline const std::int32_t* end_of_equals(const std::int32_t* begin, const std::int32_t* end) {
  constexpr int kBlock = 32;
  const std::int32_t same = *begin;
  const std::int32_t* at = begin;
  for (; end - at >= kBlock; at += kBlock) {
    std::int32_t differs = 0;
    for (int i = 0; i < kBlock; ++i) {
      differs |= at[i] ^ same;
    }
    if (differs != 0) {
      break;
    }
  }
  return std::find_if(at, end, [=](std::int32_t other) { return other != same; });
}

} // namespace stagecraft
