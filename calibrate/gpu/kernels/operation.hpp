// A kernel that is ready to run: operands in memory, plan chosen. It can be launched repeatedly.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/gpu/device/sampler.hpp"
#include "calibrate/gpu/device/session.hpp"

namespace stagecraft::gpu {

struct Operation {
  Launch launch;
  std::string variant; ///< the library's implementation
};

/// Prepares a kernel on `stream` after freeing the session's memory. `processors` is the number of multiprocessors of
/// the stream's partition, 0 for the whole device. DeviceError says why a kernel cannot run.
Operation prepare(Session& session, const Kernel& kernel, cudaStream_t stream, int processors = 0);

/// The same, but kernels prepared earlier keep their memory. The workspace is shared, so kernels with the same
/// workspace must not run at the same time.
Operation prepare_beside(Session& session, const Kernel& kernel, cudaStream_t stream, int processors);

/// Whether we have a kernel of our own for this op, pass and precision.
bool has_elementwise(const Kernel& kernel);
/// The operands of such a kernel, in the session's memory, with what a backward pass needs of the forward one.
ElementwiseOperands take_elementwise(Session& session, const Kernel& kernel, cudaStream_t stream);

/// prepare() for each family of kernels; memory is free already.
Operation prepare_gemm(Session& session, const Kernel& kernel, cudaStream_t stream, int processors);
Operation prepare_convolution(Session& session, const Kernel& kernel, cudaStream_t stream);
Operation prepare_attention(Session& session, const Kernel& kernel, cudaStream_t stream);
Operation prepare_elementwise(Session& session, const Kernel& kernel, cudaStream_t stream);

} // namespace stagecraft::gpu
