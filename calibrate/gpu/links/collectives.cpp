// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/links/collectives.hpp"

#include <algorithm>
#include <chrono>

#include "calibrate/gpu/device/current_device.hpp"

namespace stagecraft::gpu {
namespace {

constexpr std::size_t kValueBytes = sizeof(float);

void check_nccl(const Nccl& nccl, int status, const char* call) {
  if (status != 0) {
    throw DeviceError(std::string("NCCL: ") + call + ": " + nccl.error_string(status));
  }
}

} // namespace

struct CollectiveBench::Ranks {
  struct Rank {
    NcclCommunicator communicator = nullptr;
    cudaStream_t stream = nullptr;
    void *from = nullptr, *to = nullptr;
  };

  const Nccl& nccl;
  std::vector<Rank> ranks;
  std::size_t bytes = 0;

  Ranks(const Nccl& nccl_, int devices) : nccl(nccl_), ranks(static_cast<std::size_t>(devices)) {
    std::vector<NcclCommunicator> communicators(ranks.size());
    check_nccl(nccl, nccl.create_all(communicators.data(), devices, nullptr), "ncclCommInitAll");
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      ranks[i].communicator = communicators[i];
      const CurrentDevice current(static_cast<int>(i));
      STAGECRAFT_CUDA_CHECK(cudaStreamCreateWithFlags(&ranks[i].stream, cudaStreamNonBlocking));
    }
  }

  ~Ranks() {
    for (const auto& rank : ranks) {
      nccl.destroy(rank.communicator);
      cudaFree(rank.from);
      cudaFree(rank.to);
      cudaStreamDestroy(rank.stream);
    }
  }

  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  void grow(std::size_t least) {
    if (least <= bytes) {
      return;
    }
    bytes = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const CurrentDevice current(static_cast<int>(i));
      for (void** memory : {&ranks[i].from, &ranks[i].to}) {
        cudaFree(*memory);
        *memory = nullptr;
        STAGECRAFT_CUDA_CHECK(cudaMalloc(memory, least));
        fill_gaussian(Precision::fp32, *memory, static_cast<std::int64_t>(least / kValueBytes), i + 1, ranks[i].stream);
      }
      STAGECRAFT_CUDA_CHECK(cudaStreamSynchronize(ranks[i].stream));
    }
    bytes = least;
  }
};

CollectiveBench::CollectiveBench(const std::vector<std::string>& folders) : nccl_(open_nccl(folders)) {}

CollectiveBench::~CollectiveBench() = default;

void CollectiveBench::enqueue(const CollectivePoint& point) const {
  const auto devices = static_cast<std::size_t>(point.devices);
  const std::size_t count = static_cast<std::size_t>(point.bytes) / kValueBytes, each = count / devices;
  check_nccl(nccl_, nccl_.group_start(), "ncclGroupStart");
  int status = 0;
  for (std::size_t i = 0; i < devices && status == 0; ++i) {
    const Ranks::Rank& rank = ranks_->ranks[i];
    auto* from = static_cast<float*>(rank.from);
    auto* to = static_cast<float*>(rank.to);
    switch (point.op) {
    case Collective::all_reduce:
      status = nccl_.all_reduce(from, to, count, kNcclFloat32, kNcclSum, rank.communicator, rank.stream);
      break;
    case Collective::all_gather:
      status = nccl_.all_gather(from, to, each, kNcclFloat32, rank.communicator, rank.stream);
      break;
    case Collective::reduce_scatter:
      status = nccl_.reduce_scatter(from, to, each, kNcclFloat32, kNcclSum, rank.communicator, rank.stream);
      break;
    case Collective::broadcast:
      status = nccl_.broadcast(from, to, count, kNcclFloat32, 0, rank.communicator, rank.stream);
      break;
    case Collective::all_to_all:
      for (std::size_t peer = 0; peer < devices && status == 0; ++peer) {
        status =
            nccl_.send(from + peer * each, each, kNcclFloat32, static_cast<int>(peer), rank.communicator, rank.stream);
        status = status != 0 ? status
                             : nccl_.receive(to + peer * each, each, kNcclFloat32, static_cast<int>(peer),
                                             rank.communicator, rank.stream);
      }
      break;
    case Collective::send:
      status = i == 0   ? nccl_.send(from, count, kNcclFloat32, 1, rank.communicator, rank.stream)
               : i == 1 ? nccl_.receive(to, count, kNcclFloat32, 0, rank.communicator, rank.stream)
                        : 0;
      break;
    }
  }
  const int ended = nccl_.group_end(); // also after a failure, since later groups would otherwise join this one
  check_nccl(nccl_, status, "a collective");
  check_nccl(nccl_, ended, "ncclGroupEnd");
}

void CollectiveBench::synchronize() const {
  for (const Ranks::Rank& rank : ranks_->ranks) {
    STAGECRAFT_CUDA_CHECK(cudaStreamSynchronize(rank.stream));
  }
}

Timing CollectiveBench::measure(const CollectivePoint& point) {
  constexpr int kWarmUps = 3, kManySmall = 20, kFewLarge = 4;
  constexpr std::int64_t kLarge = std::int64_t{16} << 20;
  if (!nccl_.library) {
    throw DeviceError("NCCL is missing: " + nccl_.library.problem());
  }
  if (!ranks_ || ranks_->ranks.size() != static_cast<std::size_t>(point.devices)) {
    ranks_.reset();
    ranks_ = std::make_unique<Ranks>(nccl_, point.devices);
  }
  ranks_->grow(static_cast<std::size_t>(point.bytes));
  for (int i = 0; i < kWarmUps; ++i) {
    enqueue(point);
  }
  synchronize();
  const int runs = point.bytes < kLarge ? kManySmall : kFewLarge;
  const auto sample = [&] {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < runs; ++i) {
      enqueue(point);
    }
    synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / runs;
  };
  return sample_until_enough(sample, StopRule());
}

} // namespace stagecraft::gpu
