// How searches compare: the value that stands for "not at all", and by how much a candidate must be better.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

namespace stagecraft {

/// Seconds or bytes of what cannot be done, ends never or has no limit; the incumbent of a search that has found
/// nothing.
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Values that differ by no more than this share of themselves are equal: the same sums, added in another order, do.
inline constexpr double kTie = 1e-9;

/// Whether `candidate`, where less is better, replaces `incumbent`: it must be better by more than kTie of the
/// incumbent, so that of equal candidates the first one stays. Each finite candidate improves on an infinite incumbent.
constexpr bool improves(double candidate, double incumbent) { return candidate < incumbent * (1 - kTie); }

} // namespace stagecraft
