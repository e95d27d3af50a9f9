// A CUDA runtime without a device: memory is the host's, streams and events are clocks, kernels only take time. What
// the harness does around the kernels runs on it as it is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace stagecraft::gpu::fake {

/// Seconds that things take.
inline constexpr double kEmpty = 2e-6, kCopyRate = 1e11, kKernelRate = 2e12, kProductRate = 4e14, kClock = 1.755e9;

/// One call of cublasLtMatmul.
struct Product {
  const void *first = nullptr, *second = nullptr;
  const void* result = nullptr;
  int processors = 0; ///< that its heuristic was told of
};

struct State {
  int devices = 1;
  int kernels = 0;              ///< launched so far, of operators
  std::size_t refused_copy = 0; ///< copies of this size fail
  int allocations = 0;          ///< alive
  Product product;              ///< the last one
  double clock = kClock;        ///< Hz, from now on
  bool times_out = false;       ///< streams that are held are not let go in time
  int held = 0;                 ///< how often one was
};
State& state();

/// Lets a stream work for so long.
void spend(cudaStream_t stream, double seconds);

} // namespace stagecraft::gpu::fake
