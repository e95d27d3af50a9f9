// Convolutions and both their gradients by cuDNN; channels are innermost in memory.
// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "calibrate/gpu/kernels/convolution_graph.hpp"
#include "calibrate/gpu/kernels/operation.hpp"

namespace stagecraft::gpu {
namespace {

std::int64_t count_of(const DnnTensor& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t extent : tensor.extents) {
    count *= extent;
  }
  return count;
}

} // namespace

Operation prepare_convolution(Session& session, const Kernel& kernel, cudaStream_t stream) {
  if (kernel.precision == Precision::fp8) {
    throw DeviceError("convolutions are in fp32, tf32, fp16 and bf16");
  }
  const dnn::Handle handle = session.dnn_handle();
  DnnGraph graph(session.dnn);
  const Convolution at = add_convolution(graph, kernel);
  DnnTarget target;
  target.dnn = &session.dnn;
  target.handle = handle;
  target.workspace = session.workspace.size();
  const auto plan = std::make_shared<DnnPlan>(target, graph, kernel.precision != Precision::fp32);
  const auto filled = [&](const DnnTensor& tensor) {
    return session.arena.take_gaussian(kernel.precision, count_of(tensor), stream);
  };
  session.workspace.reset();
  plan->bind({{at.image, filled(at.image)}, {at.filter, filled(at.filter)}, {at.result, filled(at.result)}},
             session.workspace.take(plan->workspace()));
  const Cudnn* dnn = &session.dnn;
  return {[=](cudaStream_t on) {
            if (dnn->set_stream(handle, on) != 0) {
              throw DeviceError("cudnnSetStream failed");
            }
            plan->run(handle);
          },
          plan->variant()};
}

} // namespace stagecraft::gpu
