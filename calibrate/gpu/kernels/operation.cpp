// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/kernels/operation.hpp"

namespace stagecraft::gpu {

Operation prepare(Session& session, const Kernel& kernel, cudaStream_t stream, int processors) {
  if (bytes_of(kernel) > static_cast<double>(session.arena.size())) {
    throw DeviceError("does not fit into device memory");
  }
  session.arena.reset();
  return prepare_beside(session, kernel, stream, processors);
}

Operation prepare_beside(Session& session, const Kernel& kernel, cudaStream_t stream, int processors) {
  switch (kernel.op) {
  case Op::gemm:
    return prepare_gemm(session, kernel, stream, processors);
  case Op::convolution:
    return prepare_convolution(session, kernel, stream);
  case Op::attention:
    return prepare_attention(session, kernel, stream);
  case Op::launch:
    return {launch_empty, ""};
  default:
    return prepare_elementwise(session, kernel, stream);
  }
}

} // namespace stagecraft::gpu
