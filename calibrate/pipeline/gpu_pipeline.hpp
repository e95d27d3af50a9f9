// Backend `gpu`: writes the run to a file that calibrate_gpu runs, here or on another machine, and reads the times.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/timeline/part_times.hpp"

#include "calibrate/gpu/pipelines/carry_out.hpp"
#include "calibrate/pipeline/backend.hpp"

namespace stagecraft::pipeline {

/// The setting's graph with its kernels. A device of vendor nvidia becomes as many multiprocessors of the GPU as its
/// type's `processors`, or the whole GPU; any other device becomes that many host threads, or one. `route` says how
/// copies within the GPU are made; shaped ones get the latency and bandwidth of their leg.
gpu::Pipeline gpu_pipeline(const Setting& setting, int iterations, gpu::CopyRoute route, const std::string& name);

/// Why these times do not belong to the pipeline; "" if they do. docs/formats/pipeline.md.
std::string why_not_its_times(const gpu::Pipeline& pipeline, const gpu::CarriedOut& carried);

/// When each task ran; the times must belong to the pipeline.
Timeline timeline_of(const gpu::CarriedOut& carried, int iterations);

/// Times of the parts alone: works, slowdowns, and for each leg a line through its copies.
PartTimes part_times_of(const gpu::CarriedOut& carried, const TaskGraph& graph);

} // namespace stagecraft::pipeline
