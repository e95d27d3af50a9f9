// Memory: one block on the device, from which every point takes its operands, and host memory that the device sees too.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>

#include "calibrate/gpu/device/cuda_error.hpp"
#include "calibrate/gpu/device/kernels.hpp"

namespace stagecraft::gpu {

/// A block of device memory, allocated once; plain, not managed.
class Arena {
public:
  /// DeviceError if the device has not that much memory.
  explicit Arena(std::size_t bytes);

  /// Makes all of it free again.
  void reset() { used_ = 0; }
  /// The next `bytes`, at a multiple of 256; DeviceError if they are not free.
  void* take(std::size_t bytes);
  /// `count` normally distributed values in a precision; filling them is enqueued on `stream`.
  void* take_gaussian(Precision precision, std::int64_t count, cudaStream_t stream);

  std::size_t size() const { return size_; }

private:
  std::shared_ptr<void> memory_;
  std::size_t size_ = 0, used_ = 0;
  std::uint64_t seed_ = 1;
};

/// A value in pinned host memory that kernels see too.
template <class Value> class Shared {
public:
  Shared() {
    void* made = nullptr;
    STAGECRAFT_CUDA_CHECK(cudaHostAlloc(&made, sizeof(Value), cudaHostAllocMapped | cudaHostAllocPortable));
    host_ = std::shared_ptr<void>(made, [](void* one) { cudaFreeHost(one); });
    STAGECRAFT_CUDA_CHECK(cudaHostGetDevicePointer(&device_, made, 0));
    std::memset(made, 0, sizeof(Value));
  }

  volatile Value* host() const { return static_cast<volatile Value*>(host_.get()); }
  Value* device() const { return static_cast<Value*>(device_); }

private:
  std::shared_ptr<void> host_;
  void* device_ = nullptr;
};

} // namespace stagecraft::gpu
