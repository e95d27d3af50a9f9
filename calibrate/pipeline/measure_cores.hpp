// The parts of a run on this machine's cores, each alone: devices, copies, and what devices take from each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/pipeline/executor.hpp"

namespace stagecraft::pipeline {

/// What each device computes, in the order of its program, while the other cores do nothing and it waits for nobody: of
/// each work the mean. How much longer that takes while all devices do so at once, each for itself; and of each pair of
/// works how much longer one takes while another device does the other over and over. And copies one at a time, each
/// after the computation that makes its data. Some rounds of a fraction of a second, each with a pause.
/// Throws what execute() throws.
PartTimes measure_on_cores(const Setting& setting, Backend& backend, bool real_time);

} // namespace stagecraft::pipeline
