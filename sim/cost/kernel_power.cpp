// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/kernel_power.hpp"

#include <algorithm>

#include "sim/base/improves.hpp"

namespace stagecraft {

Seconds at_rest(const Pass& pass, KernelKind kind, const DeviceType& type, double samples, Precision precision,
                Seconds time, std::optional<Precision> products) {
  const bool known = pass.flops.value > 0 || pass.moved_elements > 0 || pass.moved_parameters > 0;
  if (!known || time.value == kInfinity) { // a type that lacks the kernel takes for ever
    return Seconds{0};
  }
  const StreamKernel kernel = kernel_of(pass, kind, type, samples, precision, time, products);
  return Seconds{time.value - kernel.work * std::min(1.0, kernel.compute + kMemoryPower * kernel.bandwidth)};
}

RestOfPasses rest_of(const Operator& op, const Shard& shard, const DeviceType& type, double samples,
                     Precision precision, const OperatorTime& time) {
  const auto of = [&](const Pass& pass, Seconds seconds) {
    return at_rest(pass_of_shard(pass, shard), op.kind, type, samples, precision, seconds, op.products);
  };
  return {of(op.forward, time.forward),
          of(op.backward_input, time.backward_input) + of(op.backward_weight, time.backward_weight)};
}

} // namespace stagecraft
