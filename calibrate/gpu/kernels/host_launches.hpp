// What launching costs the host: kernels on streams, events between streams, graphs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/gpu/device/sampler.hpp"
#include "calibrate/gpu/sweep/point.hpp"

namespace stagecraft::gpu {

/// Seconds per launch, per event recorded and awaited, or per graph: where many follow one another, until the device
/// has done them all, and as `call` the host's part alone.
Timing measure_host(int device, const HostPoint& point);

} // namespace stagecraft::gpu
