// Our own kernels: data, clocks, the blocker, and memory-bound operators as frameworks run them. Each only enqueues;
// the caller checks the stream.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "calibrate/gpu/sweep/kernel.hpp"

namespace stagecraft::gpu {

/// One reading of a multiprocessor's clocks.
struct Stamp {
  long long cycles;
  long long nanoseconds;
  unsigned processor;
};

/// `count` values of a standard normal distribution, by value number and seed: never zeros, which run faster.
void fill_gaussian(Precision precision, void* values, std::int64_t count, std::uint64_t seed, cudaStream_t stream);
/// `count` 32-bit indices in [0, below).
void fill_indices(int* values, std::int64_t count, int below, std::uint64_t seed, cudaStream_t stream);

void launch_empty(cudaStream_t stream);
void read_clocks(Stamp* stamp, cudaStream_t stream);
/// Spins for so many nanoseconds of the global timer.
void spin(long long nanoseconds, cudaStream_t stream);
/// Holds the stream until the host sets *flag, at most `nanoseconds`; counts in *timed_out when it gave up. Both lie in
/// host memory that the device sees.
void block(const volatile int* flag, long long nanoseconds, int* timed_out, cudaStream_t stream);
/// Copies `bytes` of `from` to `to` over and over until the host sets *flag, at most `nanoseconds`; sets *timed_out
/// when it gave up.
void copy_until(const volatile int* flag, long long nanoseconds, int* timed_out, const void* from, void* to,
                std::int64_t bytes, int blocks, cudaStream_t stream);

/// Writes the time of the global timer, ns, to *at, which may lie in host memory that the device sees.
void stamp_time(long long* at, cudaStream_t stream);
/// Holds the stream until *at, in host memory that the device sees, is no longer 0 and that time has come; or until
/// *stop is set; or for at most `nanoseconds`, and then counts in *timed_out.
void await_time(const volatile long long* at, const volatile int* stop, long long nanoseconds, int* timed_out,
                cudaStream_t stream);
/// Copies on few blocks. No byte arrives before *start (ns) + latency + its number x nanoseconds_per_byte, unless *stop
/// is set.
void copy_shaped(const void* from, void* to, std::int64_t bytes, const long long* start, double latency_nanoseconds,
                 double nanoseconds_per_byte, const volatile int* stop, cudaStream_t stream);
/// Sets seen[p] for every multiprocessor p, below kMostProcessors, that the stream may use.
void mark_processors(int* seen, cudaStream_t stream);
inline constexpr int kMostProcessors = 1024;

/// Operands of a memory-bound operator; which ones it reads and writes is said with each op in elementwise_kernels.cu.
struct ElementwiseOperands {
  void *x = nullptr, *y = nullptr, *z = nullptr; ///< rows x columns, stored in the kernel's precision
  unsigned char* mask = nullptr;                 ///< rows x columns
  int* indices = nullptr;                        ///< rows
  float* table = nullptr;                        ///< kVocabulary x columns, of an embedding
  float* statistics = nullptr;                   ///< 4 x max(rows, columns)
  float *weights = nullptr, *gradients = nullptr, *first = nullptr, *second = nullptr; ///< of adam
};

/// One of those that has_elementwise().
void run_elementwise(const Kernel& kernel, const ElementwiseOperands& operands, cudaStream_t stream);

} // namespace stagecraft::gpu
