// One kernel, or the whole sweep, measured on this machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "calibrate/cpu/sampler.hpp"
#include "calibrate/cpu/sweep.hpp"

namespace stagecraft::cpu {

/// What the device is: so many threads of this machine's processor, and a library for products.
struct DeviceOptions {
  int threads = 1;
  std::string library = "eigen"; ///< or "openblas"
  std::string name;              ///< in the file; "" for that of the processor and the threads
};

/// The device while it measures: operands, threads, and the arithmetic that suits the processor.
class Device {
public:
  /// std::runtime_error where the library is not installed.
  explicit Device(const DeviceOptions& options);

  /// std::runtime_error, with the reason, for what cannot run here.
  gpu::Timing measure(const gpu::Point& point, const Sampling& sampling);
  gpu::Header header() const;
  const std::string& name() const { return name_; }
  /// "cpu-amd-epyc, 1 thread, eigen avx512".
  std::string text() const;

private:
  DeviceOptions options_;
  std::string name_;
  Routines routines_;
  Arena arena_;
  Team team_;
};

struct SweepOptions {
  double budget = 50; ///< s of the whole run
  Sampling sampling;
  /// Tells how far the run is; may be empty.
  std::function<void(const std::string& group, std::size_t done, std::size_t of, double seconds)> progress;
  std::function<void(const std::string& text)> remark;
  std::function<double()> now = seconds_now;
};

/// Measures what `file` does not have yet, writing it line by line, and completes it.
void run_sweep(const std::vector<gpu::Group>& groups, Device& device, gpu::MeasurementFile& file,
               const SweepOptions& options);

} // namespace stagecraft::cpu
