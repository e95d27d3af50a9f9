// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/expert_biases.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

// Experts' products have a weight of each expert, and the bias, if there is one, behind it.
bool has_bias(const Operator& op) {
  return op.type == "expert_linear" && op.signature && op.signature->parameters.size() > 1;
}

} // namespace

ModelGraph with_expert_biases(ModelGraph model, const ExpertBiasRow& row) {
  if (row.forward_kernels == 0) {
    return model;
  }
  for (OperatorId id = 0; id < model.size(); ++id) {
    Operator& product = model.operators[id];
    const bool combined = std::any_of(model.successors[id].begin(), model.successors[id].end(),
                                      [&](OperatorId reader) { return model.operators[reader].type == "combine"; });
    if (!combined || !has_bias(product)) {
      continue;
    }
    product.forward.casts += row.forward_kernels;
    product.forward.cast_bytes += row.forward * product.output_elements;
    product.backward_input.casts += row.backward_kernels;
    product.backward_input.cast_bytes += row.backward * product.output_elements;
  }
  return model;
}

} // namespace stagecraft
