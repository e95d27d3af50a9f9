// One kernel, made ready: operands in memory, plan chosen, to be launched over and over.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/gpu/device/sampler.hpp"
#include "calibrate/gpu/device/session.hpp"

namespace stagecraft::gpu {

struct Operation {
  Launch launch;
  std::string variant; ///< how the library does it
};

/// Makes a kernel ready on `stream`, in the session's memory, which it takes anew. `processors` is the size of the
/// partition that the stream has, 0 for the whole device. DeviceError says why a kernel cannot be had.
Operation prepare(Session& session, const Kernel& kernel, cudaStream_t stream, int processors = 0);

/// The same beside the kernels that are ready already, which keep their memory; workspace is shared, so that of kernels
/// with one workspace only one may run at a time.
Operation prepare_beside(Session& session, const Kernel& kernel, cudaStream_t stream, int processors);

/// Whether there is a kernel of ours for this op in this pass.
bool has_elementwise(const Kernel& kernel);

/// prepare() of each family; memory has been given back already.
Operation prepare_gemm(Session& session, const Kernel& kernel, cudaStream_t stream, int processors);
Operation prepare_convolution(Session& session, const Kernel& kernel, cudaStream_t stream);
Operation prepare_attention(Session& session, const Kernel& kernel, cudaStream_t stream);
Operation prepare_elementwise(Session& session, const Kernel& kernel, cudaStream_t stream);

} // namespace stagecraft::gpu
