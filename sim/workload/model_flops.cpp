// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/model_flops.hpp"

#include <algorithm>

namespace stagecraft {

double tokens_of(const ModelGraph& model) {
  double most = 0;
  for (const Operator& op : model.operators) {
    if (op.kind == KernelKind::embedding && op.signature) {
      most = std::max(most, op.output_elements / static_cast<double>(op.signature->output.back().size()));
    }
  }
  return most;
}

Flops model_flops(const ModelGraph& model) {
  Flops sum;
  for (const Operator& op : model.operators) {
    const Flops forward = product_flops(op).forward;
    const Flops of_weights =
        op.frozen > 0 ? op.backward_weight.flops : forward; // gradients of frozen ones are not needed
    sum += (2 * forward + of_weights) / op.seen;
  }
  return sum;
}

ProductFlops product_flops(const Operator& op) {
  if (!row_of(op.kind).matrix) {
    return {};
  }
  return {op.forward.flops, op.backward_input.flops + op.backward_weight.flops};
}

} // namespace stagecraft
