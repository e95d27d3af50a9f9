// Lanes that work: partitions of one GPU, threads of its host, and the copies between them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/gpu/device/session.hpp"
#include "calibrate/gpu/pipelines/lanes.hpp"

namespace stagecraft::gpu {

/// Prepares partitions, kernels with their operands, buffers and threads, which live as long as the lanes. A
/// computation runs on a stream with its device's multiprocessors, a channel on a stream with those that are left over.
/// std::invalid_argument or DeviceError if the pipeline cannot run on this device. The session must outlive the lanes,
/// and must not be used otherwise meanwhile.
std::unique_ptr<Lanes> make_gpu_lanes(const Pipeline& pipeline, Session& session);

} // namespace stagecraft::gpu
