// The parts of a pipeline, each measured alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/gpu/pipelines/lanes.hpp"

namespace stagecraft::gpu {

/// Results of one round of measurements, in seconds.
struct MeasuredParts {
  std::vector<double> alone;     ///< [work]: mean over a computation's tasks while only its device works
  double gap = 0;                ///< between two computations in a row on a device
  std::vector<double> slowdowns; ///< [device]: factor by which its program takes longer while all devices run theirs
  /// [work * works + other]: factor by which a computation takes longer while another device does `other` over and
  /// over; 1 for pairs that never meet; empty: not measured.
  std::vector<double> contention;
  std::vector<std::vector<double>>
      hops; ///< [work]: for copies, each alone, between the computations before and after it
};

/// Runs each device's program alone, then all programs at once without waiting for each other, then each copy a few
/// times. Which device's program runs first goes round with `round`. Throws what the lanes throw.
MeasuredParts measure_parts(const Pipeline& pipeline, Lanes& lanes, std::size_t round);

/// The contention of all pairs of computations on two devices; `alone` comes from measure_parts(). Throws what the
/// lanes throw.
std::vector<double> measure_contention(const Pipeline& pipeline, const std::vector<double>& alone, Lanes& lanes);

/// The medians over rounds, at least one; hops are collected from all rounds.
MeasuredParts median_of(const std::vector<MeasuredParts>& rounds);

} // namespace stagecraft::gpu
