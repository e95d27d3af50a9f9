// What a launch costs: one kernel after another, in a graph, and after an event of another stream.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/gpu/device/sampler.hpp"
#include "calibrate/gpu/sweep/point.hpp"

namespace stagecraft::gpu {

/// Seconds per empty kernel. `burst`: one after another, as fast as the host enqueues them. `graph`: one after another
/// in a graph. `event`: alternating on two streams, each waiting for an event of the other.
Timing measure_launch(Sampler& sampler, Regime regime);

/// A graph of that many empty kernels, one after the other; `stream` must be idle.
std::shared_ptr<CUgraphExec_st> capture_empty(int kernels, cudaStream_t stream);

} // namespace stagecraft::gpu
