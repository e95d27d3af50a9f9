// Which replicas of two stages have parts of a micro-batch in common.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/units.hpp"

namespace stagecraft {

/// A replica of each of two stages, and the bytes between the stages of what both run, a whole number.
struct SharedPart {
  std::int32_t from = 0, to = 0;
  double bytes = 0;

  bool operator==(const SharedPart&) const = default;
};

/// The pairs of replicas whose parts of a micro-batch overlap: replicas have theirs one after the other, in these
/// shares, those of each turn for themselves. `bytes` are those of the whole micro-batch.
inline std::vector<SharedPart> shared_parts(Bytes bytes, std::span<const double> from, std::span<const double> to,
                                            std::size_t turns = 1) {
  constexpr double kRounding = 1e-12;
  std::vector<SharedPart> parts;
  const std::size_t of_turn = from.size() / turns, to_turn = to.size() / turns;
  double from_start = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    from_start = i % of_turn == 0 ? 0 : from_start;
    const double from_end = from_start + from[i];
    const std::size_t first = i / of_turn * to_turn;
    double to_start = 0;
    for (std::size_t j = first; j < first + to_turn; ++j) {
      const double to_end = to_start + to[j];
      const double overlap = std::min(from_end, to_end) - std::max(from_start, to_start);
      if (overlap > kRounding) {
        parts.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(j),
                         std::round(bytes.value * std::min(overlap, 1.0))});
      }
      to_start = to_end;
    }
    from_start = from_end;
  }
  return parts;
}

} // namespace stagecraft
