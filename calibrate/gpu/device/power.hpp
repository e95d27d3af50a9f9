// The power that a device draws over seconds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "calibrate/gpu/device/nvml.hpp"

namespace stagecraft::gpu {

/// Mean power between start() and stop(): by the energy counter, or where there is none by readings of the power.
class PowerMeter {
public:
  explicit PowerMeter(const Nvml& nvml) : nvml_(nvml) {}
  ~PowerMeter() { join(); }
  PowerMeter(const PowerMeter&) = delete;
  PowerMeter& operator=(const PowerMeter&) = delete;

  void start();
  /// W; absent where the driver tells neither.
  std::optional<double> stop();
  /// Between start() and stop(), s.
  double seconds() const { return seconds_; }
  /// The clock that was read most often in between, about: its median, Hz; 0 where unknown.
  double clock() const { return clock_; }

private:
  void join();

  const Nvml& nvml_;
  std::atomic<bool> over_{false};
  std::thread reader_;
  std::vector<double> watts_, clocks_; ///< the reader's until it has joined
  std::optional<double> energy_;
  std::chrono::steady_clock::time_point begun_;
  double seconds_ = 0, clock_ = 0;
};

} // namespace stagecraft::gpu
