// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/layer/kernel_list.hpp"

#include <algorithm>
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

void require_kernels(const ModelGraph& model, const std::string& file) {
  const bool any = std::any_of(model.operators.begin(), model.operators.end(),
                               [](const Operator& op) { return !op.forward.calls.empty(); });
  if (!any) {
    throw InputError({file, 0, 0}, "says nothing of shapes: its costs are given by numbers");
  }
}

} // namespace stagecraft
