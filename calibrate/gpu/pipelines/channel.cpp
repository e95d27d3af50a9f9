// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/pipelines/channel.hpp"

#include <algorithm>

namespace stagecraft::gpu {
namespace {

std::shared_ptr<void> pinned(std::size_t bytes) {
  void* made = nullptr;
  STAGECRAFT_CUDA_CHECK(cudaHostAlloc(&made, bytes, cudaHostAllocPortable));
  std::memset(made, 1, bytes); // touches every page
  return {made, [](void* one) { cudaFreeHost(one); }};
}

std::shared_ptr<void> on_device(std::size_t bytes) {
  void* made = nullptr;
  STAGECRAFT_CUDA_CHECK(cudaMalloc(&made, bytes));
  std::shared_ptr<void> memory(made, [](void* one) { cudaFree(one); });
  STAGECRAFT_CUDA_CHECK(cudaMemset(made, 1, bytes));
  return memory;
}

void enqueue(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  STAGECRAFT_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
}

} // namespace

Channel::Channel(std::int64_t bytes, bool from_host, bool to_host) : from_host_(from_host), to_host_(to_host) {
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  from_ = from_host ? pinned(size) : on_device(size);
  to_ = to_host ? pinned(size) : on_device(size);
  between_ = from_host || to_host ? nullptr : pinned(size);
}

void Channel::copy(const PipelineWork& work, const long long* start, const int* stop, cudaStream_t stream) const {
  const auto bytes = static_cast<std::size_t>(work.bytes);
  if (from_host_ || to_host_ || work.route == CopyRoute::device) {
    enqueue(to_.get(), from_.get(), bytes, stream);
  } else if (work.route == CopyRoute::host) {
    enqueue(between_.get(), from_.get(), bytes, stream);
    enqueue(to_.get(), between_.get(), bytes, stream);
  } else {
    constexpr double kNano = 1e9;
    copy_shaped(from_.get(), to_.get(), work.bytes, start, kNano * work.latency,
                work.bandwidth > 0 ? kNano / work.bandwidth : 0, stop, stream);
    STAGECRAFT_CUDA_CHECK(cudaGetLastError());
  }
}

void Channel::copy_here(const PipelineWork& work) const {
  std::memcpy(to_.get(), from_.get(), static_cast<std::size_t>(work.bytes));
}

} // namespace stagecraft::gpu
