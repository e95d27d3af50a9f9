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
    const Flops forward = product_flops(op);
    const bool is_frozen = op.frozen > 0 && row_of(op.kind).matrix; // gradients of frozen ones are not needed
    sum += 2 * forward + (is_frozen ? op.backward_weight.flops / op.seen : forward);
  }
  return sum;
}

// Of T keys a query of an attention in a window looks at as many as this has.
Flops product_flops(const Operator& op) {
  if (!row_of(op.kind).matrix) {
    return {};
  }
  const bool has_window = op.mask && op.mask->window > 0 && op.mask->window < op.mask->tokens;
  const double part = has_window ? static_cast<double>(op.mask->window) / static_cast<double>(op.mask->tokens) : 1;
  return op.forward.flops / op.seen * part;
}

} // namespace stagecraft
