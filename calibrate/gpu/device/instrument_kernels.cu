// Kernels that fill data, read clocks, and hold a stream back.
// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/device/kernels.hpp"
#include "calibrate/gpu/device/threads.cuh"

namespace stagecraft::gpu {
namespace {

__device__ long long global_nanoseconds() {
  long long value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
  return value;
}

template <class T> __global__ void gaussian_kernel(T* values, std::int64_t count, std::uint64_t seed) {
  const std::int64_t pair = thread_number();
  if (2 * pair >= count) {
    return;
  }
  const std::uint64_t bits = mix(seed + 0x9e3779b97f4a7c15ull * static_cast<std::uint64_t>(pair + 1));
  const float radius_of = (static_cast<float>(bits >> 40) + 1.0f) * 0x1p-24f; // in (0, 1]
  const float angle_of = static_cast<float>(bits & 0xffffffull) * 0x1p-24f;   // in [0, 1)
  const float radius = sqrtf(-2.0f * __logf(radius_of));
  float sine, cosine;
  __sincosf(6.2831853f * angle_of, &sine, &cosine);
  values[2 * pair] = from_float<T>(radius * cosine);
  if (2 * pair + 1 < count) {
    values[2 * pair + 1] = from_float<T>(radius * sine);
  }
}

__global__ void indices_kernel(int* values, std::int64_t count, int below, std::uint64_t seed) {
  const std::int64_t i = thread_number();
  if (i < count) {
    values[i] = static_cast<int>(mix(seed ^ static_cast<std::uint64_t>(i + 1)) % static_cast<std::uint64_t>(below));
  }
}

__global__ void empty_kernel() {}

__global__ void clocks_kernel(Stamp* stamp) {
  unsigned processor;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(processor));
  stamp->nanoseconds = global_nanoseconds();
  stamp->cycles = clock64();
  stamp->processor = processor;
}

__global__ void spin_kernel(long long nanoseconds) {
  const long long start = global_nanoseconds();
  while (global_nanoseconds() - start < nanoseconds) {
  }
}

__global__ void block_kernel(const volatile int* flag, long long nanoseconds, int* timed_out) {
  const long long start = global_nanoseconds();
  while (*flag == 0) {
    if (global_nanoseconds() - start > nanoseconds) {
      *timed_out += 1;
      __threadfence_system();
      return;
    }
  }
}

__global__ void copy_until_kernel(const volatile int* flag, long long nanoseconds, int* timed_out, const uint4* from,
                                  uint4* to, std::int64_t count) {
  const long long start = global_nanoseconds();
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  __shared__ bool over; // one thread of a block reads the flag from the host
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) {
      const bool late = global_nanoseconds() - start > nanoseconds;
      over = *flag != 0 || late;
      if (late) {
        *timed_out = 1;
        __threadfence_system();
      }
    }
    __syncthreads();
    if (over) {
      return;
    }
    for (std::int64_t i = thread_number(); i < count; i += stride) {
      to[i] = from[i];
    }
  }
}

constexpr int kNetworkThreads = 512, kLoadsEach = 8; // a block moves 64 KiB at once

// Block b copies every chunk whose number is b modulo the number of blocks, from the beginning again at the end.
__global__ void network_kernel(const volatile int* flag, long long nanoseconds, int* timed_out, const uint4* from,
                               uint4* to, std::int64_t chunks, double nanoseconds_per_chunk,
                               volatile long long* copied) {
  constexpr std::int64_t kChunk = static_cast<std::int64_t>(kNetworkThreads) * kLoadsEach;
  constexpr int kBetween = 32; // chunks between two looks at the host's flag, each of which takes microseconds
  const long long start = global_nanoseconds();
  __shared__ bool over;
  for (long long done = 0;; ++done) {
    if (done % kBetween == 0) {
      __syncthreads();
      if (threadIdx.x == 0) {
        const bool late = global_nanoseconds() - start > nanoseconds;
        over = *flag != 0 || late;
        copied[blockIdx.x] = done * kChunk * static_cast<long long>(sizeof(uint4));
        if (late) {
          *timed_out = 1;
        }
        __threadfence_system();
      }
      __syncthreads();
      if (over) {
        return;
      }
    }
    if (nanoseconds_per_chunk > 0) {
      if (threadIdx.x == 0) {
        const auto then = start + static_cast<long long>(static_cast<double>(done) * nanoseconds_per_chunk);
        while (global_nanoseconds() < then) {
        }
      }
      __syncthreads();
    }
    const std::int64_t number = (static_cast<std::int64_t>(blockIdx.x) + done * gridDim.x) % chunks;
    const std::int64_t at = number * kChunk + threadIdx.x;
    uint4 values[kLoadsEach];
#pragma unroll
    for (int i = 0; i < kLoadsEach; ++i) {
      values[i] = from[at + i * kNetworkThreads];
    }
#pragma unroll
    for (int i = 0; i < kLoadsEach; ++i) {
      to[at + i * kNetworkThreads] = values[i];
    }
  }
}

__global__ void stamp_kernel(volatile long long* at) {
  *at = global_nanoseconds();
  __threadfence_system();
}

__global__ void await_kernel(const volatile long long* at, const volatile int* stop, long long nanoseconds,
                             int* timed_out) {
  const long long begin = global_nanoseconds();
  for (;;) {
    const long long then = *at, now = global_nanoseconds();
    if ((then != 0 && now >= then) || *stop != 0) {
      return;
    }
    if (now - begin > nanoseconds) {
      *timed_out += 1;
      __threadfence_system();
      return;
    }
  }
}

// The blocks take turns in copying chunks. A chunk counts as arrived only when a link would have delivered its last
// byte.
__global__ void shaped_copy_kernel(const char* from, char* to, std::int64_t bytes, const long long* start,
                                   double latency, double nanoseconds_per_byte, const volatile int* stop) {
  constexpr std::int64_t kChunk = 64 * 1024;
  for (std::int64_t chunk = blockIdx.x; chunk * kChunk < bytes; chunk += gridDim.x) {
    const std::int64_t begin = chunk * kChunk;
    const std::int64_t end = begin + kChunk < bytes ? begin + kChunk : bytes;
    const std::int64_t vectors = (end - begin) / static_cast<std::int64_t>(sizeof(uint4));
    for (std::int64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
      reinterpret_cast<uint4*>(to + begin)[i] = reinterpret_cast<const uint4*>(from + begin)[i];
    }
    for (std::int64_t i = begin + vectors * static_cast<std::int64_t>(sizeof(uint4)) + threadIdx.x; i < end;
         i += blockDim.x) {
      to[i] = from[i];
    }
    if (threadIdx.x == 0) {
      const long long then = *start + static_cast<long long>(latency + static_cast<double>(end) * nanoseconds_per_byte);
      while (global_nanoseconds() < then && *stop == 0) {
      }
    }
    __syncthreads();
  }
}

__global__ void mark_kernel(int* seen) {
  constexpr long long kLong = 5000; // ns; keeps two blocks from running on one multiprocessor in turn
  unsigned processor;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(processor));
  if (threadIdx.x == 0 && processor < static_cast<unsigned>(kMostProcessors)) {
    seen[processor] = 1;
  }
  const long long begin = global_nanoseconds();
  while (global_nanoseconds() - begin < kLong) {
  }
}

} // namespace

void fill_gaussian(Precision precision, void* values, std::int64_t count, std::uint64_t seed, cudaStream_t stream) {
  const unsigned blocks = blocks_for((count + 1) / 2);
  switch (precision) {
  case Precision::bf16:
    gaussian_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<__nv_bfloat16*>(values), count, seed);
    break;
  case Precision::fp8: // gradients read it as e5m2, also without infinities
    gaussian_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<__nv_fp8_e4m3*>(values), count, seed);
    break;
  case Precision::fp16:
    gaussian_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<__half*>(values), count, seed);
    break;
  default:
    gaussian_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<float*>(values), count, seed);
  }
}

void fill_indices(int* values, std::int64_t count, int below, std::uint64_t seed, cudaStream_t stream) {
  indices_kernel<<<blocks_for(count), kThreads, 0, stream>>>(values, count, below, seed);
}

void launch_empty(cudaStream_t stream) { empty_kernel<<<1, 1, 0, stream>>>(); }
void read_clocks(Stamp* stamp, cudaStream_t stream) { clocks_kernel<<<1, 1, 0, stream>>>(stamp); }
void spin(long long nanoseconds, cudaStream_t stream) { spin_kernel<<<1, 1, 0, stream>>>(nanoseconds); }

void block(const volatile int* flag, long long nanoseconds, int* timed_out, cudaStream_t stream) {
  block_kernel<<<1, 1, 0, stream>>>(flag, nanoseconds, timed_out);
}

void copy_until(const volatile int* flag, long long nanoseconds, int* timed_out, const void* from, void* to,
                std::int64_t bytes, int blocks, cudaStream_t stream) {
  copy_until_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
      flag, nanoseconds, timed_out, static_cast<const uint4*>(from), static_cast<uint4*>(to),
      bytes / static_cast<std::int64_t>(sizeof(uint4)));
}

void wait_as_collective(const volatile int* flag, long long nanoseconds, int* timed_out, cudaStream_t stream) {
  constexpr unsigned kBlocks = 16, kWarp = 32;
  block_kernel<<<kBlocks, kWarp, 0, stream>>>(flag, nanoseconds, timed_out);
}

void copy_as_network(const volatile int* flag, long long nanoseconds, int* timed_out, const void* from, void* to,
                     std::int64_t bytes, int blocks, double nanoseconds_per_byte, long long* copied,
                     cudaStream_t stream) {
  constexpr std::int64_t kChunkBytes = static_cast<std::int64_t>(kNetworkThreads) * kLoadsEach * sizeof(uint4);
  const double per_chunk = nanoseconds_per_byte * static_cast<double>(kChunkBytes) * blocks;
  network_kernel<<<static_cast<unsigned>(blocks), kNetworkThreads, 0, stream>>>(
      flag, nanoseconds, timed_out, static_cast<const uint4*>(from), static_cast<uint4*>(to), bytes / kChunkBytes,
      per_chunk, copied);
}

void stamp_time(long long* at, cudaStream_t stream) { stamp_kernel<<<1, 1, 0, stream>>>(at); }

void await_time(const volatile long long* at, const volatile int* stop, long long nanoseconds, int* timed_out,
                cudaStream_t stream) {
  await_kernel<<<1, 1, 0, stream>>>(at, stop, nanoseconds, timed_out);
}

void copy_shaped(const void* from, void* to, std::int64_t bytes, const long long* start, double latency_nanoseconds,
                 double nanoseconds_per_byte, const volatile int* stop, cudaStream_t stream) {
  constexpr unsigned kBlocks = 8; // few enough for several copies to fit on one unit of multiprocessors
  shaped_copy_kernel<<<kBlocks, kThreads, 0, stream>>>(static_cast<const char*>(from), static_cast<char*>(to), bytes,
                                                       start, latency_nanoseconds, nanoseconds_per_byte, stop);
}

void mark_processors(int* seen, cudaStream_t stream) {
  constexpr unsigned kBlocks = 4096, kSmall = 32;
  mark_kernel<<<kBlocks, kSmall, 0, stream>>>(seen);
}

} // namespace stagecraft::gpu
