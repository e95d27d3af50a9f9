// Runs memory-bound operators with our own kernels.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "calibrate/gpu/kernels/operation.hpp"

namespace stagecraft::gpu {
namespace {

float* take_floats(Session& session, std::int64_t count, cudaStream_t stream) {
  return static_cast<float*>(session.arena.take_gaussian(Precision::fp32, count, stream));
}

ElementwiseOperands take_adam(Session& session, Precision precision, std::int64_t count, cudaStream_t stream) {
  ElementwiseOperands operands;
  operands.weights = take_floats(session, count, stream);
  if (bytes_of(precision) == 2) { // gradients, and a copy of the weights
    operands.x = session.arena.take_gaussian(precision, count, stream);
    operands.y = session.arena.take_gaussian(precision, count, stream);
  } else {
    operands.gradients = take_floats(session, count, stream);
  }
  operands.first = take_floats(session, count, stream);
  operands.second = take_floats(session, count, stream);
  return operands;
}

// The tensors that an op reads and writes.
std::vector<void**> tensors_of(const Kernel& kernel, ElementwiseOperands& operands) {
  switch (kernel.op) {
  case Op::rotary:
  case Op::cross_entropy:
  case Op::clip: // in place
    return {&operands.x};
  case Op::swiglu:
    return {&operands.x, &operands.y, &operands.z, &operands.u, &operands.v};
  default:
    return {&operands.x, &operands.y, &operands.z};
  }
}

ElementwiseOperands take_cast(Session& session, const Kernel& kernel, std::int64_t count, cudaStream_t stream) {
  ElementwiseOperands operands;
  operands.x = session.arena.take_gaussian(cast_from(kernel.precision), count, stream);
  operands.y = session.arena.take_gaussian(kernel.precision, count, stream);
  operands.statistics = take_floats(session, 1, stream); // the scale
  return operands;
}

ElementwiseOperands take_operands(Session& session, const Kernel& kernel, cudaStream_t stream) {
  const std::int64_t rows = kernel.shape[0], columns = kernel.shape[1];
  ElementwiseOperands operands;
  for (void** tensor : tensors_of(kernel, operands)) {
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
  if (kernel.op == Op::rotary) {
    operands.table = take_floats(session, kPositions * columns, stream);
    fill_rotary(operands.table, columns, stream);
  }
  if (kernel.op == Op::cross_entropy) { // targets
    operands.indices = static_cast<int*>(session.arena.take(static_cast<std::size_t>(rows) * sizeof(int)));
    fill_indices(operands.indices, rows, static_cast<int>(columns), 1, stream);
  }
  return operands;
}

} // namespace

bool has_elementwise(const Kernel& kernel) {
  if (kernel.precision == Precision::fp8 && kernel.op != Op::cast) {
    return false;
  }
  switch (kernel.op) {
  case Op::add: // backward: the gradients of two users of a value are added
    return kernel.pass != Pass::backward_weight;
  case Op::copy:
  case Op::sum:
  case Op::adam:
  case Op::clip:
  case Op::cast:
    return kernel.pass == Pass::forward;
  case Op::embedding:
    return kernel.pass != Pass::backward_input;
  case Op::relu:
  case Op::gelu:
  case Op::dropout:
  case Op::layer_norm:
  case Op::batch_norm:
  case Op::softmax:
  case Op::rms_norm:
  case Op::swiglu:
  case Op::rotary:
  case Op::cross_entropy:
    return kernel.pass != Pass::backward_weight;
  default:
    return false;
  }
}

ElementwiseOperands take_elementwise(Session& session, const Kernel& kernel, cudaStream_t stream) {
  const std::int64_t count = kernel.shape[0] * kernel.shape[1];
  const ElementwiseOperands operands = kernel.op == Op::adam   ? take_adam(session, kernel.precision, count, stream)
                                       : kernel.op == Op::cast ? take_cast(session, kernel, count, stream)
                                                               : take_operands(session, kernel, stream);
  if (kernel.op == Op::cross_entropy && kernel.pass != Pass::forward) { // its sums, so that no gradient is infinite
    Kernel forward = kernel;
    forward.pass = Pass::forward;
    run_elementwise(forward, operands, stream);
  }
  return operands;
}

Operation prepare_elementwise(Session& session, const Kernel& kernel, cudaStream_t stream) {
  if (!has_elementwise(kernel)) {
    throw DeviceError("no kernel for this pass and precision");
  }
  const ElementwiseOperands operands = take_elementwise(session, kernel, stream);
  STAGECRAFT_CUDA_CHECK(cudaGetLastError());
  return {[=](cudaStream_t on) { run_elementwise(kernel, operands, on); }, ""};
}

} // namespace stagecraft::gpu
