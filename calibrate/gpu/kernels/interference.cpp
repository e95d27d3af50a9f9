// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/kernels/interference.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>

#include "calibrate/gpu/kernels/operation.hpp"

namespace stagecraft::gpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kHostChunk = std::size_t{32} << 20; // bytes of one copy to or from the host: about 0.6 ms
constexpr std::size_t kDeviceChunk = std::size_t{256} << 20;
constexpr double kSettle = 0.1, kSampled = 0.2;         // seconds
constexpr long long kMostCopied = 5'000'000'000;        // nanoseconds after which a copying kernel ends by itself
constexpr double kNetworkNanosecondsPerByte = 1.0 / 50; // a port of 400 Gbit/s

std::shared_ptr<void> make_pinned(std::size_t bytes) {
  void* made = nullptr;
  STAGECRAFT_CUDA_CHECK(cudaHostAlloc(&made, bytes, cudaHostAllocPortable));
  std::memset(made, 1, bytes);
  return {made, [](void* one) { cudaFreeHost(one); }};
}

/// Copies memory without a pause from construction to destruction.
class Copier {
public:
  virtual ~Copier() = default;
  /// Bytes copied so far.
  virtual double copied() const = 0;
  /// Throws DeviceError if the copies ended too early.
  virtual void check() const = 0;
};

/// By a copy engine, or whatever the driver copies with: one copy runs while the next waits behind it.
class EngineCopier : public Copier {
public:
  EngineCopier(int device, void* to, const void* from, std::size_t bytes)
      : stream_(make_stream()), thread_([this, device, to, from, bytes] { run(device, to, from, bytes); }) {}
  ~EngineCopier() override {
    over_ = true;
    thread_.join();
  }
  EngineCopier(const EngineCopier&) = delete;
  EngineCopier& operator=(const EngineCopier&) = delete;

  double copied() const override { return static_cast<double>(copied_); }
  void check() const override {
    if (failed_) {
      throw DeviceError("a copy beside the kernel failed");
    }
  }

private:
  void run(int device, void* to, const void* from, std::size_t bytes) {
    try {
      STAGECRAFT_CUDA_CHECK(cudaSetDevice(device));
      for (std::size_t number = 0; !over_; ++number) {
        STAGECRAFT_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_.get()));
        events_[number % 2].record(stream_.get());
        if (number > 0) {
          STAGECRAFT_CUDA_CHECK(cudaEventSynchronize(events_[(number - 1) % 2].get()));
          copied_ += static_cast<long long>(bytes);
        }
      }
    } catch (const std::exception&) {
      failed_ = true;
    }
    cudaStreamSynchronize(stream_.get());
  }

  std::shared_ptr<CUstream_st> stream_;
  std::array<Event, 2> events_;
  std::atomic<bool> over_{false}, failed_{false};
  std::atomic<long long> copied_{0};
  std::thread thread_; // the last member: it uses the others
};

/// By a few blocks of a kernel, as networks' kernels copy.
class BlockCopier : public Copier {
public:
  BlockCopier(void* to, const void* from, std::size_t bytes, int blocks, double nanoseconds_per_byte)
      : stream_(make_stream()), blocks_(blocks) {
    copy_as_network(flag_.device(), kMostCopied, timed_out_.device(), from, to, static_cast<std::int64_t>(bytes),
                    blocks, nanoseconds_per_byte, copied_.device()->data(), stream_.get());
    STAGECRAFT_CUDA_CHECK(cudaGetLastError());
  }
  ~BlockCopier() override {
    *flag_.host() = 1;
    cudaStreamSynchronize(stream_.get());
  }
  BlockCopier(const BlockCopier&) = delete;
  BlockCopier& operator=(const BlockCopier&) = delete;

  double copied() const override {
    const auto* of_block = reinterpret_cast<const volatile long long*>(copied_.host());
    double bytes = 0;
    for (int block = 0; block < blocks_; ++block) {
      bytes += static_cast<double>(of_block[block]);
    }
    return bytes;
  }
  void check() const override {
    if (*timed_out_.host() != 0) {
      throw DeviceError("the kernel that copies beside ended by itself, so that nothing was copied at the same time");
    }
  }

private:
  std::shared_ptr<CUstream_st> stream_;
  Shared<int> flag_, timed_out_;
  Shared<std::array<long long, kMostCopyBlocks>> copied_;
  int blocks_;
};

/// What is copied: device memory, and pinned host memory.
struct Blocks {
  void *from, *to, *host_from, *host_to;
};

using Copiers = std::vector<std::unique_ptr<Copier>>;

/// Bytes that copiers have copied, and when.
struct Mark {
  Clock::time_point at = Clock::now();
  double bytes = 0;

  explicit Mark(const Copiers& copiers) {
    for (const auto& copier : copiers) {
      bytes += copier->copied();
    }
  }
  double rate_since(const Mark& earlier) const {
    return (bytes - earlier.bytes) / std::chrono::duration<double>(at - earlier.at).count();
  }
};

// Starts what copies, between two blocks of device memory or pinned host memory.
Copiers start_copiers(Beside beside, int device, const Blocks& memory) {
  constexpr int kFew = 8, kMany = 16;
  const auto engine = [&](void* to, const void* from, std::size_t bytes) {
    return std::make_unique<EngineCopier>(device, to, from, bytes);
  };
  const auto blocks = [&](int count, double nanoseconds_per_byte) {
    return std::make_unique<BlockCopier>(memory.to, memory.from, kDeviceChunk, count, nanoseconds_per_byte);
  };
  Copiers copiers;
  switch (beside) {
  case Beside::host_to_device:
    copiers.push_back(engine(memory.to, memory.host_from, kHostChunk));
    break;
  case Beside::device_to_host:
    copiers.push_back(engine(memory.host_to, memory.from, kHostChunk));
    break;
  case Beside::both_ways:
    copiers.push_back(engine(memory.to, memory.host_from, kHostChunk));
    copiers.push_back(engine(memory.host_to, memory.from, kHostChunk));
    break;
  case Beside::device_to_device:
    copiers.push_back(engine(memory.to, memory.from, kDeviceChunk));
    break;
  case Beside::blocks_8:
    copiers.push_back(blocks(kFew, 0));
    break;
  case Beside::blocks_16:
    copiers.push_back(blocks(kMany, 0));
    break;
  case Beside::blocks_16_paced:
    copiers.push_back(blocks(kMany, kNetworkNanosecondsPerByte));
    break;
  }
  return copiers;
}

} // namespace

InterferenceBench::InterferenceBench(Session& session, Sampler& sampler)
    : session_(session), sampler_(sampler), pinned_in_(make_pinned(kHostChunk)), pinned_out_(make_pinned(kHostChunk)) {}

Interference InterferenceBench::measure(const InterferencePoint& point) {
  const Operation operation = prepare(session_, point.kernel, sampler_.stream());
  Blocks memory{};
  memory.from = session_.arena.take(kDeviceChunk);
  memory.to = session_.arena.take(kDeviceChunk);
  memory.host_from = pinned_in_.get();
  memory.host_to = pinned_out_.get();
  STAGECRAFT_CUDA_CHECK(cudaMemsetAsync(memory.from, 1, kDeviceChunk, sampler_.stream()));
  STAGECRAFT_CUDA_CHECK(cudaStreamSynchronize(sampler_.stream()));
  Interference result;
  result.alone = sampler_.measure_sustained(operation.launch, kSettle, kSampled).seconds.median;
  const Copiers copiers = start_copiers(point.beside, session_.device, memory);
  wait_for(kSettle / 2);
  const Mark first(copiers);
  wait_for(kSettle);
  const Mark second(copiers);
  result.rate_alone = second.rate_since(first);
  std::vector<Mark> begun;
  result.beside = sampler_.measure_sustained(operation.launch, kSettle, kSampled, [&] { begun.emplace_back(copiers); });
  result.beside_rate = Mark(copiers).rate_since(begun.at(0));
  result.beside.variant = operation.variant;
  for (const auto& copier : copiers) {
    copier->check();
  }
  if (result.rate_alone <= 0) {
    throw DeviceError("nothing was copied beside the kernel");
  }
  return result;
}

} // namespace stagecraft::gpu
