// Devices of a pipeline that are host threads beside a GPU. Each runs its steps when their inputs are ready.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>

#include "calibrate/gpu/pipelines/host_team.hpp"
#include "calibrate/gpu/pipelines/lanes.hpp"

namespace stagecraft::gpu {

/// Start and finish of steps by the GPU's clock, 0 before they happen; in memory that the GPU sees too.
struct StepTimes {
  volatile long long *start = nullptr, *finish = nullptr; ///< [step]
};

/// What all threads of a run share.
struct HostRun {
  StepTimes times;
  long long offset = 0; ///< nanoseconds: the GPU's clock less the host's
  std::atomic<bool> released{false}, stopped{false};

  /// The current time by the GPU's clock.
  long long now() const;
  /// Records the first failure and stops all threads.
  void fail(int step, const std::string& cause);
  int failed_step() const { return failed_step_; } ///< -1: none; valid once all threads have ended
  const std::string& cause() const { return cause_; }

private:
  std::mutex mutex_;
  int failed_step_ = -1;
  std::string cause_;
};

/// Does the work of one step; throws std::exception if it fails.
using HostAction = std::function<void(const LaneStep& step)>;

/// Does the steps of the list that belong to the lane, in order, until the last is done or the run is stopped. Waits
/// without sleeping.
void serve_host_lane(const std::vector<LaneStep>& steps, int lane, const HostAction& action, HostRun& run);

} // namespace stagecraft::gpu
