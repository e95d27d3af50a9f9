// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/loss_kernels.hpp"

#include <utility>

namespace stagecraft {

ModelGraph with_loss(ModelGraph model, const LossRow& row, double element) {
  for (Operator& op : model.operators) {
    if (op.type != "cross_entropy" || row.bytes == 0) {
      continue;
    }
    op.stash_elements *= row.bytes / element;
    for (const auto& [pass, done] :
         {std::pair(&op.forward, row.forward), std::pair(&op.backward_input, row.backward)}) {
      pass->moved_elements *= done.moved / (2 * element); // counted were a read and a write of each score
      pass->kernels = done.kernels;
      pass->calls.clear(); // memory bounds all of them
    }
  }
  return model;
}

} // namespace stagecraft
