// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/image_layouts.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

bool is_grouped(const Operator& op) {
  constexpr std::size_t kGroups = 9; // of a convolution's shape
  return std::any_of(op.forward.calls.begin(), op.forward.calls.end(), [](const KernelCall& call) {
    return call.op == KernelOp::convolution && call.shape[kGroups] > 1;
  });
}

} // namespace

ModelGraph with_image_layout(ModelGraph model, const ImageLayoutRow& row, Precision precision) {
  if (!row.transposes) {
    return model;
  }
  for (Operator& op : model.operators) {
    for (Pass* pass : {&op.forward, &op.backward_input}) {
      pass->instructions = pass->instructions_channels_first;
    }
  }
  if (precision == Precision::fp32) { // kernels without tensor cores read channels first
    return model;
  }
  for (Operator& op : model.operators) {
    if (op.kind != KernelKind::convolution || is_grouped(op)) {
      continue;
    }
    for (Pass* pass : {&op.forward, &op.backward_input, &op.backward_weight}) {
      if (pass->kernels > 0) {
        pass->casts += 2; // what it reads and what it writes; of the weight's gradient both that it reads
        pass->cast_bytes += 2 * pass->moved_elements * row_of(precision).bytes;
      }
    }
  }
  return model;
}

} // namespace stagecraft
