// Time as it passes here, for how long work takes; simulated time is Seconds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace stagecraft {

using Clock = std::chrono::steady_clock;

/// Seconds that have passed since.
inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

} // namespace stagecraft
