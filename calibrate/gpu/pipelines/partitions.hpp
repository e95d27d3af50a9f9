// Some of a device's multiprocessors as a device of their own (green contexts, CUDA 12.5 and later).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include <memory>
#include <vector>

#include "calibrate/gpu/device/buffers.hpp"

namespace stagecraft::gpu {

/// Parts of one device, each with multiprocessors that no other has; memory, cache and power stay shared. All come from
/// one split: those of several splits would overlap.
class Partitions {
public:
  /// A part of each size, and one of all other multiprocessors that make whole units. DeviceError where the driver has
  /// no such thing, or too few units.
  Partitions(int device, const std::vector<int>& sizes);

  /// How many multiprocessors the last part has, that of the rest; with 0 it is not there.
  int rest() const { return rest_; }
  /// A new stream on a part, the rest coming last. It keeps its part alive.
  std::shared_ptr<CUstream_st> stream(std::size_t part) const;

private:
  std::vector<std::shared_ptr<CUgreenCtx_st>> contexts_;
  CUresult (*make_stream_)(CUstream*, CUgreenCtx, unsigned, int) = nullptr;
  int rest_ = 0;
};

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
