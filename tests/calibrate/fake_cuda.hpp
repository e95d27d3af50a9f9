// A CUDA runtime without a device: memory is the host's, streams and events are clocks, kernels only take time. What
// the harness does around the kernels runs on it as it is. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace stagecraft::gpu::fake {

/// Seconds that things take.
inline constexpr double kEmpty = 2e-6, kCopyRate = 1e11, kKernelRate = 2e12, kClock = 1.755e9;

struct State {
  int devices = 1;
  int kernels = 0;              ///< launched so far, of operators
  std::size_t refused_copy = 0; ///< copies of this size fail
  int allocations = 0;          ///< alive
};
State& state();

} // namespace stagecraft::gpu::fake
