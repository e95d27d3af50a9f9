// Statistics of one point: quartiles, and whether there are enough samples.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace stagecraft::gpu {

/// Order statistics of samples; quartiles are interpolated between neighbours.
struct Summary {
  double median = 0, q1 = 0, q3 = 0, least = 0;
  int samples = 0;
};

/// Summarises samples, at least one.
Summary summarize(std::vector<double> samples);

/// Relative standard error of the median, as of a normal distribution: 1.2533 sigma / sqrt(n). sigma comes from the
/// quartiles, so that outliers do not matter.
double relative_error(const Summary& summary);

/// When to stop sampling one point.
struct StopRule {
  double error = 0.003; ///< relative standard error of the median to be reached
  int least = 7, most = 200;
  double seconds = 0.15; ///< after this time `least_slow` samples are enough
  int least_slow = 3;
};

/// Whether the samples, taken in `elapsed` seconds of wall time, are enough.
bool enough(const StopRule& rule, const std::vector<double>& samples, double elapsed);

} // namespace stagecraft::gpu
