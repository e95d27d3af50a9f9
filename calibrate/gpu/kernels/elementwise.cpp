// Runs memory-bound operators with our own kernels.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "calibrate/gpu/kernels/operation.hpp"

namespace stagecraft::gpu {
namespace {

float* take_floats(Session& session, std::int64_t count, cudaStream_t stream) {
  return static_cast<float*>(session.arena.take_gaussian(Precision::fp32, count, stream));
}

ElementwiseOperands take_adam(Session& session, std::int64_t count, cudaStream_t stream) {
  ElementwiseOperands operands;
  operands.weights = take_floats(session, count, stream);
  operands.gradients = take_floats(session, count, stream);
  operands.first = take_floats(session, count, stream);
  operands.second = take_floats(session, count, stream);
  return operands;
}

ElementwiseOperands take_operands(Session& session, const Kernel& kernel, cudaStream_t stream) {
  const std::int64_t rows = kernel.shape[0], columns = kernel.shape[1];
  ElementwiseOperands operands;
  for (void** tensor : {&operands.x, &operands.y, &operands.z}) {
    *tensor = session.arena.take_gaussian(kernel.precision, rows * columns, stream);
  }
  operands.statistics = take_floats(session, 4 * std::max(rows, columns), stream);
  operands.weights = take_floats(session, columns, stream);
  if (kernel.op == Op::dropout) {
    operands.mask = static_cast<unsigned char*>(session.arena.take(static_cast<std::size_t>(rows * columns)));
    STAGECRAFT_CUDA_CHECK(cudaMemsetAsync(operands.mask, 1, static_cast<std::size_t>(rows * columns), stream));
  }
  if (kernel.op == Op::embedding) {
    operands.indices = static_cast<int*>(session.arena.take(static_cast<std::size_t>(rows) * sizeof(int)));
    fill_indices(operands.indices, rows, kVocabulary, 1, stream);
    operands.table = take_floats(session, kVocabulary * columns, stream);
  }
  return operands;
}

} // namespace

bool has_elementwise(const Kernel& kernel) {
  switch (kernel.op) {
  case Op::add: // backward: the gradients of two users of a value are added
    return kernel.pass != Pass::backward_weight;
  case Op::copy:
  case Op::sum:
  case Op::adam:
    return kernel.pass == Pass::forward;
  case Op::embedding:
    return kernel.pass != Pass::backward_input;
  case Op::relu:
  case Op::gelu:
  case Op::dropout:
  case Op::layer_norm:
  case Op::batch_norm:
  case Op::softmax:
    return kernel.pass != Pass::backward_weight;
  default:
    return false;
  }
}

Operation prepare_elementwise(Session& session, const Kernel& kernel, cudaStream_t stream) {
  if (!has_elementwise(kernel)) {
    throw DeviceError("no kernel for this pass");
  }
  const std::int64_t count = kernel.shape[0] * kernel.shape[1];
  const ElementwiseOperands operands =
      kernel.op == Op::adam ? take_adam(session, count, stream) : take_operands(session, kernel, stream);
  STAGECRAFT_CUDA_CHECK(cudaGetLastError());
  return {[=](cudaStream_t on) { run_elementwise(kernel, operands, on); }, ""};
}

} // namespace stagecraft::gpu
