// Partitions: some multiprocessors of a device as a device of their own (green contexts, CUDA 12.5 and later).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include <memory>
#include <vector>

#include "calibrate/gpu/device/buffers.hpp"

namespace stagecraft::gpu {

/// Parts of one device with disjoint sets of multiprocessors; memory, cache and power stay shared. All parts come from
/// one split, since those of different splits would overlap.
class Partitions {
public:
  /// Makes a part for each size, and one of all remaining multiprocessors in whole units. DeviceError if the driver
  /// cannot do it, or there are too few units.
  Partitions(int device, const std::vector<int>& sizes);

  /// The number of multiprocessors of the last part, the remaining ones; 0: there is no such part.
  int rest() const { return rest_; }
  /// A new stream on a part; the remaining multiprocessors are the last part. The stream keeps its part alive.
  std::shared_ptr<CUstream_st> stream(std::size_t part) const;

private:
  std::vector<std::shared_ptr<CUgreenCtx_st>> contexts_;
  CUresult (*make_stream_)(CUstream*, CUgreenCtx, unsigned, int) = nullptr;
  int rest_ = 0;
};

/// Two streams with separate multiprocessors of one device; memory, cache and power stay shared. Kernels of the usual
/// context run on both.
class Partition {
public:
  /// `processors` for the first stream, all others in whole units for the second. DeviceError if the driver cannot do
  /// it.
  Partition(int device, int processors);

  cudaStream_t stream() const { return first_.get(); }
  int processors() const { return processors_; }

  /// During its lifetime the multiprocessors of the second stream copy memory.
  class Busy {
  public:
    Busy(const Partition& partition, void* from, void* to, std::int64_t bytes);
    ~Busy();
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

    /// Whether the copying timed out: what was measured meanwhile waited for it, or took seconds.
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
