// Measures one kernel, or a whole sweep of kernels, on this machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "calibrate/cpu/sampler.hpp"
#include "calibrate/cpu/sweep.hpp"

namespace stagecraft::cpu {

/// The device to measure: threads of this machine's processor, and a library for matrix products.
struct DeviceOptions {
  int threads = 1;
  std::string library = "eigen"; ///< "eigen" or "openblas"
  std::string name;              ///< the device's name in the file; "" for one made from processor and threads
};

/// A device while it is measured: its operands, its threads, and the routines that suit the processor.
class Device {
public:
  /// std::runtime_error if the library is not installed.
  explicit Device(const DeviceOptions& options);

  /// The time of one kernel. std::runtime_error, with the reason, for a kernel that cannot run here.
  gpu::Timing measure(const gpu::Point& point, const Sampling& sampling);
  gpu::Header header() const;
  const std::string& name() const { return name_; }
  /// A description such as "cpu-amd-epyc, 1 thread, eigen avx512".
  std::string text() const;

private:
  DeviceOptions options_;
  std::string name_;
  Routines routines_;
  Arena arena_;
  Team team_;
};

struct SweepOptions {
  double budget = 50; ///< seconds for the whole run
  Sampling sampling;
  /// Called with the progress of the run; may be empty.
  std::function<void(const std::string& group, std::size_t done, std::size_t of, double seconds)> progress;
  std::function<void(const std::string& text)> remark;
  std::function<double()> now = seconds_now;
};

/// Measures the points that `file` does not have yet, writes each when it is measured, and completes the file.
void run_sweep(const std::vector<gpu::Group>& groups, Device& device, gpu::MeasurementFile& file,
               const SweepOptions& options);

} // namespace stagecraft::cpu
