// Copies between host and device, within the device, and between devices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "calibrate/gpu/device/sampler.hpp"
#include "calibrate/gpu/device/session.hpp"
#include "calibrate/gpu/sweep/point.hpp"

namespace stagecraft::gpu {

/// Measures copies; allocates memory for the first one and keeps it.
class CopyBench {
public:
  CopyBench(Session& session, Sampler& sampler);
  ~CopyBench();

  /// DeviceError says why a copy cannot run.
  Timing measure(const CopyPoint& point);

private:
  struct Buffers;
  struct Ends {
    void* to;
    const void* from;
    bool peers;
    int to_device, from_device;
  };

  Ends ends(End from, End to, bool pinned, std::size_t place, std::size_t bytes);
  void enqueue(const Ends& ends, std::size_t bytes, cudaStream_t stream) const;
  Timing measure_both(const CopyPoint& point);

  Session& session_;
  Sampler& sampler_;
  std::unique_ptr<Buffers> buffers_;
};

} // namespace stagecraft::gpu
