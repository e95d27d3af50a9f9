// Lanes do the steps of a pipeline: each device and each channel is a lane, which does one step after another.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "calibrate/gpu/output/measurement_file.hpp"
#include "calibrate/gpu/pipelines/pipeline.hpp"

namespace stagecraft::gpu {

/// A step: a device computes, or a channel copies.
struct LaneStep {
  int lane = 0;           ///< a device, or the number of devices plus a channel
  int work = -1;          ///< index in the pipeline; -1: no work, ends at once
  std::vector<int> after; ///< earlier steps of the list that must have ended
};

/// When a step ran, in nanoseconds of one clock.
struct LaneSpan {
  std::int64_t start = 0, finish = 0;
};

/// A step failed; what() says why.
class LaneFailure : public std::runtime_error {
public:
  LaneFailure(int failed, const std::string& cause) : std::runtime_error(cause), step(failed) {}
  int step; ///< index in the list
};

class Lanes {
public:
  virtual ~Lanes() = default;

  /// Runs the steps, those of one lane in the order of the list, and returns their times [step]. LaneFailure if a step
  /// fails; then nothing runs any more.
  virtual std::vector<LaneSpan> run(const std::vector<LaneStep>& steps) = 0;
  /// Facts about the lanes for the record of a run: names and values.
  virtual Facts conditions() const = 0;
};

/// Lanes that do nothing. A simulated clock says what an imagined GPU of 132 multiprocessors would take, always the
/// same. If `failing` is not negative, that step of every list fails.
std::unique_ptr<Lanes> make_dry_lanes(const Pipeline& pipeline, int failing = -1);

} // namespace stagecraft::gpu
