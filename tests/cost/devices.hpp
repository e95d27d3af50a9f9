// A device type of round numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/platform/platform.hpp"

namespace stagecraft::test {

/// 100 FLOP/s for matrix products and convolutions in fp32, 200 in fp16, 50 FLOP/s for anything else but attention,
/// which it lacks; 10 B/s; launches of 0.5 s.
inline DeviceType round_device(const std::string& name = "round") {
  DeviceType type;
  type.name = name;
  for (const KernelKindRow& row : kKernelKinds) {
    auto& rates = type.rates[static_cast<std::size_t>(row.kind)];
    if (row.kind != KernelKind::attention) {
      rates[static_cast<std::size_t>(Precision::fp32)] = FlopsPerSecond{row.matrix ? 100.0 : 50.0};
      rates[static_cast<std::size_t>(Precision::fp16)] = FlopsPerSecond{row.matrix ? 200.0 : 50.0};
    }
  }
  type.memory_bandwidth = BytesPerSecond{10};
  type.launch_overhead = Seconds{0.5};
  return type;
}

} // namespace stagecraft::test
