// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/device/power.hpp"

#include <numeric>

#include "calibrate/gpu/sweep/statistics.hpp"

namespace stagecraft::gpu {

void PowerMeter::start() {
  join();
  watts_.clear();
  clocks_.clear();
  over_ = false;
  begun_ = std::chrono::steady_clock::now();
  energy_ = nvml_.energy();
  reader_ = std::thread([this] {
    while (!over_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (const auto watts = nvml_.power()) {
        watts_.push_back(*watts);
      }
      if (const auto clock = nvml_.clock()) {
        clocks_.push_back(*clock);
      }
    }
  });
}

std::optional<double> PowerMeter::stop() {
  const std::optional<double> energy = nvml_.energy();
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  join();
  clock_ = clocks_.empty() ? 0 : summarize(clocks_).median;
  if (energy && energy_ && *energy > *energy_) {
    return (*energy - *energy_) / seconds_;
  }
  if (watts_.empty()) {
    return std::nullopt;
  }
  return std::accumulate(watts_.begin(), watts_.end(), 0.0) / static_cast<double>(watts_.size());
}

void PowerMeter::join() {
  over_ = true;
  if (reader_.joinable()) {
    reader_.join();
  }
}

} // namespace stagecraft::gpu
