// What it costs to launch: one kernel after the other, in a graph, and after an event of another stream.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/gpu/device/sampler.hpp"
#include "calibrate/gpu/sweep/point.hpp"

namespace stagecraft::gpu {

/// Seconds of one empty kernel: `burst` one after the other as the host can enqueue them, `graph` one after the other
/// in a graph, `event` in turns on two streams, each waiting for an event of the other.
Timing measure_launch(Sampler& sampler, Regime regime);

} // namespace stagecraft::gpu
