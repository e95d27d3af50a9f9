// Lanes that work: partitions of one GPU, threads of its host, and the copies between them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/gpu/device/session.hpp"
#include "calibrate/gpu/pipelines/lanes.hpp"

namespace stagecraft::gpu {

/// Makes everything ready: partitions, kernels with their operands, buffers, threads; all of it goes with the lanes. A
/// computation has a stream of its device's multiprocessors, a channel one of the multiprocessors that are left over.
/// std::invalid_argument or DeviceError where the pipeline cannot be had on this device; the session outlives them and
/// serves nobody else meanwhile.
std::unique_ptr<Lanes> make_gpu_lanes(const Pipeline& pipeline, Session& session);

} // namespace stagecraft::gpu
