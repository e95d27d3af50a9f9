// Our own kernels: to fill data, read clocks and hold streams, and memory-bound operators as frameworks run them.
// Functions only enqueue kernels; the caller checks the stream for errors.
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

/// `count` values of a standard normal distribution, by index and seed. Zeros would run faster.
void fill_gaussian(Precision precision, void* values, std::int64_t count, std::uint64_t seed, cudaStream_t stream);
/// `count` 32-bit indices in [0, below).
void fill_indices(int* values, std::int64_t count, int below, std::uint64_t seed, cudaStream_t stream);

void launch_empty(cudaStream_t stream);
void read_clocks(Stamp* stamp, cudaStream_t stream);
/// Spins for `nanoseconds` of the global timer.
void spin(long long nanoseconds, cudaStream_t stream);
/// Holds the stream until the host sets *flag, for at most `nanoseconds`; then adds to *timed_out. Both are in host
/// memory that the device sees.
void block(const volatile int* flag, long long nanoseconds, int* timed_out, cudaStream_t stream);
/// Copies `bytes` from `from` to `to` repeatedly until the host sets *flag, for at most `nanoseconds`; then sets
/// *timed_out.
void copy_until(const volatile int* flag, long long nanoseconds, int* timed_out, const void* from, void* to,
                std::int64_t bytes, int blocks, cudaStream_t stream);

/// Waits with 16 blocks, as a collective's kernel does for its peers, until the host sets *flag; for at most
/// `nanoseconds`, and then adds to *timed_out.
void wait_as_collective(const volatile int* flag, long long nanoseconds, int* timed_out, cudaStream_t stream);
inline constexpr int kMostCopyBlocks = 64;
/// Copies `bytes`, at least 64 KiB, over and over as a network's kernel does, with a few blocks, at most
/// kMostCopyBlocks, all together no faster than `nanoseconds_per_byte`, until the host sets *flag; for at most
/// `nanoseconds`, and then sets *timed_out. copied[b], in host memory that the device sees, grows by what block b
/// copied.
void copy_as_network(const volatile int* flag, long long nanoseconds, int* timed_out, const void* from, void* to,
                     std::int64_t bytes, int blocks, double nanoseconds_per_byte, long long* copied,
                     cudaStream_t stream);

/// Writes the time of the global timer in nanoseconds to *at, which may be in host memory that the device sees.
void stamp_time(long long* at, cudaStream_t stream);
/// Holds the stream until *at, in host memory that the device sees, is not 0 and the time *at has come; or until *stop
/// is set; or for at most `nanoseconds`, and then adds to *timed_out.
void await_time(const volatile long long* at, const volatile int* stop, long long nanoseconds, int* timed_out,
                cudaStream_t stream);
/// Copies with few blocks, as slowly as a link: byte n does not arrive before *start (ns) + latency + n x
/// nanoseconds_per_byte, unless *stop is set.
void copy_shaped(const void* from, void* to, std::int64_t bytes, const long long* start, double latency_nanoseconds,
                 double nanoseconds_per_byte, const volatile int* stop, cudaStream_t stream);
/// Sets seen[p] for each multiprocessor p, below kMostProcessors, on which the stream's kernels may run.
void mark_processors(int* seen, cudaStream_t stream);
inline constexpr int kMostProcessors = 1024;

/// Rows that share a position in a rotary embedding: the heads of a token.
inline constexpr std::int64_t kRowsPerPosition = 32;
/// Fills the table of a rotary embedding: cosine and sine of kPositions x columns / 2 angles.
void fill_rotary(float* table, std::int64_t columns, cudaStream_t stream);
/// The norm to which gradients are clipped.
inline constexpr float kMostNorm = 1.0F;

/// Operands of a memory-bound operator; the files of kernels say which of them each op reads and writes.
struct ElementwiseOperands {
  void *x = nullptr, *y = nullptr, *z = nullptr, *u = nullptr,
       *v = nullptr;             ///< rows x columns, stored in the kernel's precision
  unsigned char* mask = nullptr; ///< rows x columns
  int* indices = nullptr;        ///< rows
  float* table = nullptr;        ///< kVocabulary x columns of embeddings; of rotary positions kPositions x columns
  float* statistics = nullptr;   ///< 4 x max(rows, columns)
  float *weights = nullptr, *gradients = nullptr, *first = nullptr, *second = nullptr; ///< for adam
};

/// Runs a kernel for which has_elementwise() is true.
void run_elementwise(const Kernel& kernel, const ElementwiseOperands& operands, cudaStream_t stream);

} // namespace stagecraft::gpu
