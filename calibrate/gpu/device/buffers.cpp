// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/device/buffers.hpp"

namespace stagecraft::gpu {
namespace {

constexpr std::size_t kAlignment = 256;

} // namespace

Arena::Arena(std::size_t bytes) : size_(bytes) {
  void* made = nullptr;
  STAGECRAFT_CUDA_CHECK(cudaMalloc(&made, bytes));
  memory_ = std::shared_ptr<void>(made, [](void* one) { cudaFree(one); });
}

void* Arena::take(std::size_t bytes) {
  const std::size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (whole > size_ - used_) {
    throw DeviceError("does not fit into device memory");
  }
  void* taken = static_cast<char*>(memory_.get()) + used_;
  used_ += whole;
  return taken;
}

void* Arena::take_gaussian(Precision precision, std::int64_t count, cudaStream_t stream) {
  void* taken = take(static_cast<std::size_t>(count * bytes_of(precision)));
  fill_gaussian(precision, taken, count, seed_++, stream);
  STAGECRAFT_CUDA_CHECK(cudaGetLastError());
  return taken;
}

} // namespace stagecraft::gpu
