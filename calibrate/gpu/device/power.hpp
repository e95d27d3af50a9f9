// The mean power of a device over seconds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "calibrate/gpu/device/nvml.hpp"

namespace stagecraft::gpu {

/// Measures the mean power between start() and stop(): by the energy counter or, without one, by readings of the power.
class PowerMeter {
public:
  explicit PowerMeter(const Nvml& nvml) : nvml_(nvml) {}
  ~PowerMeter() { join(); }
  PowerMeter(const PowerMeter&) = delete;
  PowerMeter& operator=(const PowerMeter&) = delete;

  void start();
  /// The mean power in W; absent if the driver gives neither.
  std::optional<double> stop();
  /// Seconds between start() and stop().
  double seconds() const { return seconds_; }
  /// Median of the clocks read between start() and stop(), Hz; 0: unknown.
  double clock() const { return clock_; }

private:
  void join();

  const Nvml& nvml_;
  std::atomic<bool> over_{false};
  std::thread reader_;
  std::vector<double> watts_, clocks_; ///< only the reader thread uses them until it has joined
  std::optional<double> energy_;
  std::chrono::steady_clock::time_point begun_;
  double seconds_ = 0, clock_ = 0;
};

} // namespace stagecraft::gpu
