// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/fused_norms.hpp"

#include <algorithm>
#include <vector>

namespace stagecraft {
namespace {

bool runs(const Operator& op, KernelOp kernel) {
  return op.forward.calls.size() == 1 && op.forward.calls.front().op == kernel;
}

// Work that another kernel does, with what that kernel moves for it.
void join(Pass& pass, double moved_elements) {
  pass.kernels = 0;
  pass.moved_elements = moved_elements;
  pass.calls.clear();
}

} // namespace

ModelGraph with_fused_norms(ModelGraph model) {
  std::vector<bool> of_norm(model.operators.size()); // its result is that of a norm's kernel
  const auto alone_behind = [&](OperatorId before) {
    return of_norm[static_cast<std::size_t>(before)] && model.successors[before].size() == 1;
  };
  for (std::size_t at = 0; at < model.operators.size(); ++at) { // in topological order
    Operator& op = model.operators[at];
    const std::vector<OperatorId>& before = model.predecessors[at];
    const bool joins = std::any_of(before.begin(), before.end(), alone_behind);
    if (runs(op, KernelOp::batch_norm)) {
      of_norm[at] = true;
    } else if (joins && runs(op, KernelOp::add)) {
      const double others = static_cast<double>(before.size()) - 1;
      join(op.forward, others * op.output_elements);
      join(op.backward_input, others * op.output_elements);
      of_norm[at] = true;
    } else if (joins && runs(op, KernelOp::relu)) {
      join(op.forward, 0);
      join(op.backward_input, 0);
    }
  }
  return model;
}

} // namespace stagecraft
