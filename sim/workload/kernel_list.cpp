// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/kernel_list.hpp"

#include <set>

namespace stagecraft {

Kernel kernel_of(const KernelCall& call, KernelPass pass, Precision precision, double samples) {
  Kernel kernel{call.op, pass, precision, call.shape};
  kernel.shape[static_cast<std::size_t>(call.grows)] *= samples;
  return kernel;
}

std::vector<Kernel> kernels_of(const ModelGraph& model, Precision precision, double samples) {
  std::vector<Kernel> kernels;
  std::set<std::string> seen;
  const auto add = [&](const Pass& pass, KernelPass which) {
    for (const KernelCall& call : pass.calls) {
      const Kernel kernel = kernel_of(call, which, precision, samples);
      if (seen.insert(to_text(kernel)).second) {
        kernels.push_back(kernel);
      }
    }
  };
  for (const Operator& op : model.operators) {
    add(op.forward, KernelPass::forward);
    add(op.backward_input, KernelPass::backward_input);
    add(op.backward_weight, KernelPass::backward_weight);
  }
  return kernels;
}

} // namespace stagecraft
