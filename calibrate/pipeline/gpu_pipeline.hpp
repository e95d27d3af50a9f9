// Backend `gpu`: the run as a file that calibrate_gpu carries out, here or on another machine, and what came of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/timeline/part_times.hpp"

#include "calibrate/gpu/pipelines/carry_out.hpp"
#include "calibrate/pipeline/backend.hpp"

namespace stagecraft::pipeline {

/// The setting's graph with its kernels. A device type of vendor nvidia is so many multiprocessors of the GPU as it has
/// `processors`, or the whole GPU; any other type as many threads of the host, or one. `route` is that of copies within
/// the GPU; shaped ones take the latency and the bandwidth of their leg.
gpu::Pipeline gpu_pipeline(const Setting& setting, int iterations, gpu::CopyRoute route, const std::string& name);

/// Why the times are not those of a pipeline; "" where they are. docs/formats/pipeline.md
std::string why_not_its_times(const gpu::Pipeline& pipeline, const gpu::CarriedOut& carried);

/// When each task ran. Of times that are the pipeline's.
Timeline timeline_of(const gpu::CarriedOut& carried, int iterations);

/// What its parts took alone: works, slowdowns, and a line through the copies of each leg.
PartTimes part_times_of(const gpu::CarriedOut& carried, const TaskGraph& graph);

} // namespace stagecraft::pipeline
