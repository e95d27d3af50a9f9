// The parts of a real run, each alone: computations, and one transfer at a time over each kind of channel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/timeline/part_times.hpp"

#include "calibrate/pipeline/executor.hpp"

namespace stagecraft::pipeline {

/// Measures on the backend of a run, by graphs of its own: legs with links of equal bandwidths and latencies are of one
/// kind, and the first of them stands for all. Four sizes, several times each; a line of the least relative errors
/// through their medians. Throws what execute() throws.
PartTimes measure_parts(const Setting& setting, Backend& backend, bool real_time);

} // namespace stagecraft::pipeline
