// The parts of a run on this machine's cores, each alone: kernels, copies, and what cores take from each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/pipeline/executor.hpp"

namespace stagecraft::pipeline {

/// Every kernel of a device, at its place among those of the same device, while the other cores do nothing. What the
/// same kernels take longer while all devices go through theirs, none waiting for another, is the slowdown of a device.
/// Copies one at a time, each after the computation that makes its data. Medians over several rounds, each a fraction
/// of a second, with pauses. Throws what execute() throws; the backend is not used.
PartTimes measure_on_cores(const Setting& setting, Backend& backend, bool real_time);

} // namespace stagecraft::pipeline
