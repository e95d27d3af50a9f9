// The clock of a real run: nanoseconds of CLOCK_MONOTONIC, and sleeping until a given time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "sim/base/units.hpp"

namespace stagecraft::pipeline {

using Nanoseconds = std::int64_t;

inline constexpr Nanoseconds kNanosecondsPerSecond = 1'000'000'000;

Nanoseconds nanoseconds(Seconds time);
Seconds seconds(Nanoseconds time);

Nanoseconds now();

/// Processor time that this thread has used.
Nanoseconds processor_time();

/// Sleeps until `then`, or until `stop` is set, which it checks some ten times a second.
void sleep_until(Nanoseconds then, const std::atomic<bool>& stop);

/// Asks for the lowest real-time priority for this thread, or `above` more, and for timers without slack. Returns
/// whether it was granted.
bool ask_for_real_time(int above = 0);

} // namespace stagecraft::pipeline
