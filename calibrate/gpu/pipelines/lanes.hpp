// Where the steps of a pipeline are done: devices and channels, each one thing after the other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "calibrate/gpu/output/measurement_file.hpp"
#include "calibrate/gpu/pipelines/pipeline.hpp"

namespace stagecraft::gpu {

/// One thing that a lane does: a device computes, a channel copies.
struct LaneStep {
  int lane = 0;           ///< a device, or the number of devices and a channel
  int work = -1;          ///< of the pipeline; -1: nothing, which is over at once
  std::vector<int> after; ///< steps before it in the list that must be over
};

/// When it was done, in nanoseconds of one clock.
struct LaneSpan {
  std::int64_t start = 0, finish = 0;
};

/// A step failed; what() says why.
class LaneFailure : public std::runtime_error {
public:
  LaneFailure(int failed, const std::string& cause) : std::runtime_error(cause), step(failed) {}
  int step; ///< of the list
};

class Lanes {
public:
  virtual ~Lanes() = default;

  /// Does the steps, those of one lane in the order of the list; [step]: when. LaneFailure where one fails: nothing
  /// goes on by then.
  virtual std::vector<LaneSpan> run(const std::vector<LaneStep>& steps) = 0;
  /// What they are, for the record of a run: names and values.
  virtual Facts conditions() const = 0;
};

/// Lanes that do nothing: a clock says what a made-up GPU of 132 multiprocessors would take, always the same.
/// `failing`, unless below 0, is the step of every list that fails.
std::unique_ptr<Lanes> make_dry_lanes(const Pipeline& pipeline, int failing = -1);

} // namespace stagecraft::gpu
