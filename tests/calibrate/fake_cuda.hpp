// A CUDA runtime without a device: memory is the host's, streams and events are clocks, and kernels only take time. The
// harness's own code around the kernels runs on it unchanged.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace stagecraft::gpu::fake {

/// How long things take, in seconds, and rates per second.
inline constexpr double kEmpty = 2e-6, kCopyRate = 1e11, kKernelRate = 2e12, kProductRate = 4e14, kClock = 1.755e9;

/// One call of cublasLtMatmul.
struct Product {
  const void *first = nullptr, *second = nullptr;
  const void* result = nullptr;
  int processors = 0; ///< number that its heuristic was given
  bool fast = false;  ///< whether sums of 8 bits may be less exact
};

struct State {
  int devices = 1;
  int kernels = 0;              ///< kernels of operators launched so far
  std::size_t refused_copy = 0; ///< copies of this size fail
  int allocations = 0;          ///< number not freed yet
  Product product;              ///< the last one
  double clock = kClock;        ///< Hz, from now on
  bool times_out = false;       ///< held streams are released too late
  bool refuses_fp8 = false;     ///< cuBLASLt knows no products in 8 bits
  int held = 0;                 ///< how many times a stream was held
};
State& state();

/// Keeps a stream busy for `seconds`.
void spend(cudaStream_t stream, double seconds);

} // namespace stagecraft::gpu::fake
