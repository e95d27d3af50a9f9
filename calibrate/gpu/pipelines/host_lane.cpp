// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/pipelines/host_lane.hpp"

#include <chrono>

namespace stagecraft::gpu {

long long HostRun::now() const {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count() + offset;
}

void HostRun::fail(int step, const std::string& cause) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!stopped) {
    failed_step_ = step;
    cause_ = cause;
    stopped = true;
  }
}

void serve_host_lane(const std::vector<LaneStep>& steps, int lane, const HostAction& action, HostRun& run) {
  const auto wait_until = [&](const auto& ready) {
    while (!ready() && !run.stopped) {
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    return !run.stopped;
  };
  if (!wait_until([&] { return run.released.load(); })) {
    return;
  }
  for (std::size_t number = 0; number < steps.size(); ++number) {
    if (steps[number].lane != lane) {
      continue;
    }
    for (const int before : steps[number].after) {
      const volatile long long& over = run.times.finish[before];
      if (!wait_until([&] { return over != 0 && run.now() >= over; })) {
        return;
      }
    }
    run.times.start[number] = run.now();
    try {
      action(steps[number]);
    } catch (const std::exception& failure) {
      run.fail(static_cast<int>(number), failure.what());
      return;
    }
    std::atomic_thread_fence(std::memory_order_release);
    run.times.finish[number] = run.now();
  }
}

} // namespace stagecraft::gpu
