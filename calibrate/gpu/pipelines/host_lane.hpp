// Devices of a pipeline that are threads of the host, beside a GPU: each runs its steps when the times of what they
// wait for are there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>

#include "calibrate/gpu/pipelines/host_team.hpp"
#include "calibrate/gpu/pipelines/lanes.hpp"

namespace stagecraft::gpu {

/// Start and finish of steps in the clock of the GPU, 0 while they have not come: memory that it sees too.
struct StepTimes {
  volatile long long *start = nullptr, *finish = nullptr; ///< [step]
};

/// What all threads of a run share.
struct HostRun {
  StepTimes times;
  long long offset = 0; ///< ns, from the host's clock to the GPU's
  std::atomic<bool> released{false}, stopped{false};

  /// The time of the GPU's clock.
  long long now() const;
  /// Keeps the first failure and stops everybody.
  void fail(int step, const std::string& cause);
  int failed_step() const { return failed_step_; } ///< -1: none; once all threads have ended
  const std::string& cause() const { return cause_; }

private:
  std::mutex mutex_;
  int failed_step_ = -1;
  std::string cause_;
};

/// Does one step's work; std::exception where it fails.
using HostAction = std::function<void(const LaneStep& step)>;

/// Does the steps of the list that are on the lane, in order, until the last is done or the run is stopped. Waits
/// without sleeping.
void serve_host_lane(const std::vector<LaneStep>& steps, int lane, const HostAction& action, HostRun& run);

} // namespace stagecraft::gpu
