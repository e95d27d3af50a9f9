// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/links/copies.hpp"

#include <array>
#include <cstring>

#include "calibrate/gpu/device/current_device.hpp"

namespace stagecraft::gpu {
namespace {

constexpr int kPeer = 1; // index of the other device; the session has device 0

void allow_peer(int device, int peer) {
  int can = 0;
  STAGECRAFT_CUDA_CHECK(cudaDeviceCanAccessPeer(&can, device, peer));
  if (can != 0) {
    const CurrentDevice current(device);
    cudaDeviceEnablePeerAccess(peer, 0); // fails harmlessly if it is enabled already
    cudaGetLastError();
  }
}

} // namespace

// One buffer of each kind per direction; each grows to the largest size that was needed.
struct CopyBench::Buffers {
  struct Block {
    std::shared_ptr<void> memory;
    std::size_t bytes = 0;
  };
  std::array<Block, 2> pinned, pageable, here, there;
  std::shared_ptr<CUstream_st> other = make_stream(), other_there;
  Event fork, begin, end;

  static void* grown(Block& block, std::size_t bytes, void* (*make)(std::size_t), void (*destroy)(void*)) {
    if (block.bytes < bytes) {
      block = Block(); // frees the old block first, also in case the new one cannot be had
      block.memory = std::shared_ptr<void>(make(bytes), destroy);
      block.bytes = bytes;
    }
    return block.memory.get();
  }
};

CopyBench::CopyBench(Session& session, Sampler& sampler)
    : session_(session), sampler_(sampler), buffers_(std::make_unique<Buffers>()) {}

CopyBench::~CopyBench() = default;

namespace {

void* make_pinned(std::size_t bytes) {
  void* made = nullptr;
  STAGECRAFT_CUDA_CHECK(cudaHostAlloc(&made, bytes, cudaHostAllocPortable));
  std::memset(made, 1, bytes);
  return made;
}

void* make_pageable(std::size_t bytes) {
  void* made = ::operator new(bytes);
  std::memset(made, 1, bytes); // touches every page
  return made;
}

void* make_device(std::size_t bytes) {
  void* made = nullptr;
  STAGECRAFT_CUDA_CHECK(cudaMalloc(&made, bytes));
  STAGECRAFT_CUDA_CHECK(cudaMemset(made, 1, bytes));
  return made;
}

void free_pinned(void* one) { cudaFreeHost(one); }
void free_pageable(void* one) { ::operator delete(one); }
void free_device(void* one) { cudaFree(one); }

} // namespace

CopyBench::Ends CopyBench::ends(End from, End to, bool pinned, std::size_t place, std::size_t bytes) {
  const auto on_host = [&] {
    return pinned ? Buffers::grown(buffers_->pinned[place], bytes, make_pinned, free_pinned)
                  : Buffers::grown(buffers_->pageable[place], bytes, make_pageable, free_pageable);
  };
  const auto on_device = [&](std::size_t which) {
    return Buffers::grown(buffers_->here[which], bytes, make_device, free_device);
  };
  const auto on_peer = [&] {
    const CurrentDevice current(kPeer);
    return Buffers::grown(buffers_->there[place], bytes, make_device, free_device);
  };
  Ends ends{};
  ends.peers = from == End::peer || to == End::peer;
  ends.from_device = from == End::peer ? kPeer : session_.device;
  ends.to_device = to == End::peer ? kPeer : session_.device;
  const bool within = from == End::device && to == End::device;
  ends.from = from == End::host ? on_host() : from == End::peer ? on_peer() : on_device(place);
  ends.to = to == End::host ? on_host() : to == End::peer ? on_peer() : on_device(within ? 1 - place : place);
  return ends;
}

void CopyBench::enqueue(const Ends& ends, std::size_t bytes, cudaStream_t stream) const {
  if (ends.peers) {
    STAGECRAFT_CUDA_CHECK(cudaMemcpyPeerAsync(ends.to, ends.to_device, ends.from, ends.from_device, bytes, stream));
  } else {
    STAGECRAFT_CUDA_CHECK(cudaMemcpyAsync(ends.to, ends.from, bytes, cudaMemcpyDefault, stream));
  }
}

Timing CopyBench::measure(const CopyPoint& point) {
  if (point.from == End::peer || point.to == End::peer) {
    if (session_.device == kPeer) {
      throw DeviceError("peers are measured from another device than " + std::to_string(kPeer));
    }
    allow_peer(session_.device, kPeer);
    allow_peer(kPeer, session_.device);
  }
  if (point.both_ways) {
    return measure_both(point);
  }
  const auto bytes = static_cast<std::size_t>(point.bytes);
  const Ends one = ends(point.from, point.to, point.pinned, 0, bytes);
  Method method;
  method.flush = point.from == End::device && point.to == End::device;
  method.block = point.pinned; // the host itself copies pageable memory, and would wait for a held stream
  method.drop_throttled = false;
  Timing timing = sampler_.measure([&](cudaStream_t stream) { enqueue(one, bytes, stream); }, method);
  timing.clock = 0;
  return timing;
}

// The time of one direction while the other runs with twice as many bytes.
Timing CopyBench::measure_both(const CopyPoint& point) {
  const auto bytes = static_cast<std::size_t>(point.bytes);
  const Ends one = ends(point.from, point.to, point.pinned, 0, bytes);
  const Ends opposite = ends(point.to, point.from, point.pinned, 1, bytes);
  if (one.peers && !buffers_->other_there) {
    const CurrentDevice current(kPeer);
    buffers_->other_there = make_stream();
  }
  const cudaStream_t stream = sampler_.stream();
  const cudaStream_t other = one.peers ? buffers_->other_there.get() : buffers_->other.get();
  enqueue(one, bytes, stream);
  enqueue(opposite, bytes, other);
  STAGECRAFT_CUDA_CHECK(cudaStreamSynchronize(stream));
  STAGECRAFT_CUDA_CHECK(cudaStreamSynchronize(other));
  Blocker& blocker = sampler_.blocker();
  const auto sample = [&] {
    const int timed_out = blocker.timed_out();
    blocker.hold(stream);
    try {
      buffers_->fork.record(stream);
      STAGECRAFT_CUDA_CHECK(cudaStreamWaitEvent(other, buffers_->fork.get(), 0));
      enqueue(opposite, bytes, other);
      enqueue(opposite, bytes, other);
      buffers_->begin.record(stream);
      enqueue(one, bytes, stream);
      buffers_->end.record(stream);
    } catch (...) {
      blocker.release();
      throw;
    }
    blocker.release();
    STAGECRAFT_CUDA_CHECK(cudaStreamSynchronize(stream));
    STAGECRAFT_CUDA_CHECK(cudaStreamSynchronize(other));
    return blocker.timed_out() == timed_out ? seconds_between(buffers_->begin, buffers_->end) : -1.0;
  };
  return sample_until_enough(sample, StopRule());
}

} // namespace stagecraft::gpu
