// Memory: one block of the device from which every point takes its operands anew, and host memory that both sides see.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>

#include "calibrate/gpu/device/cuda_error.hpp"
#include "calibrate/gpu/device/kernels.hpp"

namespace stagecraft::gpu {

/// Device memory, allocated once; plain, never managed.
class Arena {
public:
  /// DeviceError where the device has not as much.
  explicit Arena(std::size_t bytes);

  /// Gives all of it back to those who take.
  void reset() { used_ = 0; }
  /// The next `bytes`, at a multiple of 256; DeviceError where no more are there.
  void* take(std::size_t bytes);
  /// `count` values of a precision, normally distributed, enqueued on `stream`.
  void* take_gaussian(Precision precision, std::int64_t count, cudaStream_t stream);

  std::size_t size() const { return size_; }

private:
  std::shared_ptr<void> memory_;
  std::size_t size_ = 0, used_ = 0;
  std::uint64_t seed_ = 1;
};

/// One value in pinned host memory that kernels see too.
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
