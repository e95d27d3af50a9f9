// The parts of a pipeline, each measured alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/gpu/pipelines/lanes.hpp"

namespace stagecraft::gpu {

/// What one round of measurements says; seconds.
struct MeasuredParts {
  std::vector<double> alone;     ///< [work]: the mean of a computation's tasks, the device being the only one at work
  double gap = 0;                ///< between two computations that follow one another on a device
  std::vector<double> slowdowns; ///< [device]: how much longer its program takes while all run theirs at once
  /// [work * works + other]: how many times as long a computation takes while another device does the other over and
  /// over; 1 of pairs that never meet; empty: not measured.
  std::vector<double> contention;
  std::vector<std::vector<double>>
      hops; ///< [work]: of copies, one at a time, between the computations before and after
};

/// Runs each device's program alone, then all at once, nobody waiting for anybody, then each copy a few times. Throws
/// what the lanes do.
MeasuredParts measure_parts(const Pipeline& pipeline, Lanes& lanes);

/// Contention of all pairs of computations of two devices; `alone` is of measure_parts(). Throws what the lanes do.
std::vector<double> measure_contention(const Pipeline& pipeline, const std::vector<double>& alone, Lanes& lanes);

/// The median of each over at least one round; hops are put together.
MeasuredParts median_of(const std::vector<MeasuredParts>& rounds);

} // namespace stagecraft::gpu
