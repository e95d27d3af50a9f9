// Some of a device's multiprocessors as a device of their own (green contexts, CUDA 12.5 and later).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "calibrate/gpu/buffers.hpp"

namespace stagecraft::gpu {

/// Two streams that have separate multiprocessors of one device; memory, cache and power stay shared. Kernels of the
/// usual context run on either.
class Partition {
public:
  /// `processors` in the first stream, all others that make whole units in the second. DeviceError where the driver has
  /// no such thing.
  Partition(int device, int processors);

  cudaStream_t stream() const { return first_.get(); }
  int processors() const { return processors_; }

  /// While it lives, the other multiprocessors copy memory.
  class Busy {
  public:
    Busy(const Partition& partition, void* from, void* to, std::int64_t bytes);
    ~Busy();
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

    /// Whether they stopped of themselves: what was measured meanwhile waited for them, or took seconds.
    bool gave_up() const { return *timed_out_.host() != 0; }

  private:
    Shared<int> flag_, timed_out_;
    cudaStream_t stream_;
  };

private:
  std::shared_ptr<CUstream_st> first_, second_;
  int processors_ = 0, others_ = 0;
};

} // namespace stagecraft::gpu
