// Measures the parts of a real run, each alone: computations, and one transfer at a time for each kind of channel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/timeline/part_times.hpp"

#include "calibrate/pipeline/executor.hpp"

namespace stagecraft::pipeline {

/// Measures with graphs of its own on the backend of a run. Legs whose links have equal bandwidths and latencies are of
/// one kind, and the first of each kind is measured: four sizes, several times each, and a line of least relative
/// errors through their medians. Throws what execute() throws.
PartTimes measure_parts(const Setting& setting, Backend& backend, bool real_time);

} // namespace stagecraft::pipeline
