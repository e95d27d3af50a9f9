// The statistics of one point: quartiles, and when enough samples have been taken.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace stagecraft::gpu {

/// Order statistics of samples; quartiles interpolate between neighbours.
struct Summary {
  double median = 0, q1 = 0, q3 = 0, least = 0;
  int samples = 0;
};

/// Of at least one sample.
Summary summarize(std::vector<double> samples);

/// Relative standard error of the median: that of a normal distribution, 1.2533 sigma / sqrt(n), where sigma is taken
/// from the quartiles so that outliers do not count.
double relative_error(const Summary& summary);

/// When to stop sampling one point.
struct StopRule {
  double error = 0.003; ///< of the median, relative
  int least = 7, most = 200;
  double seconds = 0.15; ///< beyond which `least_slow` samples are enough
  int least_slow = 3;
};

/// Whether the samples taken so far, in `elapsed` seconds of wall time, are enough.
bool enough(const StopRule& rule, const std::vector<double>& samples, double elapsed);

} // namespace stagecraft::gpu
