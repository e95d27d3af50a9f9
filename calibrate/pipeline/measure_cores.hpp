// Measures the parts of a run on this machine's cores, each alone: computations, copies, and how devices slow each
// other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/pipeline/executor.hpp"

namespace stagecraft::pipeline {

/// Measures: for each work, the mean time while its device runs its program alone, without waiting; how much longer
/// each device takes when all run their programs at once; for each pair of works, how much longer one takes while
/// another device does the other over and over; and copies one at a time, each after the computation that makes its
/// data. Takes some rounds of a fraction of a second, each followed by a pause. Throws what execute() throws.
PartTimes measure_on_cores(const Setting& setting, Backend& backend, bool real_time);

} // namespace stagecraft::pipeline
