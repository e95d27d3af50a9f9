// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/loss_kernels.hpp"

namespace stagecraft {

ModelGraph with_loss(ModelGraph model, const LossRow& row, double element) {
  for (Operator& op : model.operators) {
    if (op.type != "cross_entropy" || row.bytes == 0) {
      continue;
    }
    op.stash_elements *= row.bytes / element;
    for (Pass* pass : {&op.forward, &op.backward_input}) {
      constexpr int kKernels = 4;
      pass->moved_elements *= row.moved / (2 * element); // counted were a read and a write of each score
      pass->kernels = kKernels;
      pass->calls.clear(); // memory bounds all of them
    }
  }
  return model;
}

} // namespace stagecraft
