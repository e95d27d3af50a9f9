// When a time has been sampled often enough, and which samples count.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "calibrate/cpu/team.hpp"
#include "calibrate/gpu/output/measurement_file.hpp"

namespace stagecraft::cpu {

/// How one time is sampled.
struct Sampling {
  gpu::StopRule rule{.error = 0.004, .least = 5, .most = 60, .seconds = 0.05, .least_slow = 3};
  double least_sample = 200e-6; ///< seconds; a sample consists of several runs of a shorter kernel
  double patience = 4;          ///< multiple of rule.seconds after which contaminated samples are accepted
};

/// Runs the kernel `runs` times and reads the clocks.
using TakeSample = std::function<Reading(int runs)>;

/// Samples the processor time per run until its median is known well enough. Contaminated samples are only counted, as
/// dropped; if too few clean ones come in time, all count, and `variant` says "shared core". `now` returns seconds of
/// wall time.
gpu::Timing sample(const TakeSample& take, const Sampling& sampling, const std::function<double()>& now);

/// Wall time in seconds.
double seconds_now();

} // namespace stagecraft::cpu
