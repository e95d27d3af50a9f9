// When one time has been sampled well enough, and which samples count.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "calibrate/cpu/team.hpp"
#include "calibrate/gpu/output/measurement_file.hpp"

namespace stagecraft::cpu {

/// How one time is sampled.
struct Sampling {
  gpu::StopRule rule{.error = 0.004, .least = 5, .most = 60, .seconds = 0.05, .least_slow = 3};
  double least_sample = 200e-6; ///< s: shorter kernels run several times a sample
  double patience = 4;          ///< times rule.seconds, after which contaminated samples must do
};

/// Runs the kernel so many times and reads the clocks.
using TakeSample = std::function<Reading(int runs)>;

/// Samples until the median is known well enough: processor time per run, of samples that nothing contaminated; the
/// others are counted as dropped. Where too few are clean in time, all count, and `variant` says "shared core".
/// `now` tells seconds of wall time.
gpu::Timing sample(const TakeSample& take, const Sampling& sampling, const std::function<double()>& now);

/// Seconds on the wall.
double seconds_now();

} // namespace stagecraft::cpu
