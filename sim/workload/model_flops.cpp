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

Flops product_flops(const Operator& op) { return row_of(op.kind).matrix ? op.forward.flops / op.seen : Flops{}; }

} // namespace stagecraft
