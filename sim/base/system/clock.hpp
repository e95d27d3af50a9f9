// Real time, to measure how long our own work takes. Simulated time is Seconds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace stagecraft {

using Clock = std::chrono::steady_clock;

/// Real seconds that have passed since `start`.
inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

} // namespace stagecraft
