// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/scale_device.hpp"

#include <algorithm>
#include <memory>

namespace stagecraft {
namespace {

// One scale after the other.
FitScale both(const FitScale& first, const FitScale& then) {
  return {.flops = first.flops * then.flops,
          .memory_bandwidth = first.memory_bandwidth * then.memory_bandwidth,
          .launch = first.launch * then.launch,
          .processors = first.processors * then.processors,
          .copies = first.copies * then.copies,
          .collectives = first.collectives * then.collectives,
          .attention = first.attention || then.attention ? std::optional(first.arithmetic(KernelKind::attention) *
                                                                         then.arithmetic(KernelKind::attention))
                                                         : std::nullopt,
          .error_floor = std::max(first.error_floor, then.error_floor)};
}

} // namespace

void scale_kernels(DeviceType& type, const FitScale& scale) {
  for (std::size_t kind = 0; kind < type.rates.size(); ++kind) {
    const double factor = scale.arithmetic(static_cast<KernelKind>(kind));
    for (std::optional<FlopsPerSecond>& rate : type.rates[kind]) {
      if (rate) {
        *rate = *rate * factor;
      }
    }
  }
  type.memory_bandwidth = type.memory_bandwidth * scale.memory_bandwidth;
  type.launch_overhead = type.launch_overhead * scale.launch;
  if (type.fits) {
    KernelFits fits = *type.fits;
    fits.scale = fits.scale ? both(*fits.scale, scale) : scale;
    type.fits = std::make_shared<const KernelFits>(std::move(fits));
  }
}

} // namespace stagecraft
