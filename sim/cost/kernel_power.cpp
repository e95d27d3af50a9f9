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

} // namespace stagecraft
