// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/loss_kernels.hpp"

#include <utility>

#include "sim/base/named_table.hpp"

namespace stagecraft {

const LossRow& as_divided(const LossRow& row) {
  return row.name == "single" ? find_by_name(kLosses, "single-parallel", "loss", {}) : row;
}

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
