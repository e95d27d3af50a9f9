// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/slowest_device.hpp"

#include <algorithm>

#include "sim/base/statistics.hpp"

namespace stagecraft {

std::vector<SlowestDevice> slowest_devices(const Platform& platform, double spread) {
  std::vector<SlowestDevice> slowest;
  for (std::size_t type = 0; type < platform.types.size() && spread > 0; ++type) {
    const auto count = std::count_if(platform.devices.begin(), platform.devices.end(),
                                     [&](const Device& device) { return device.type == static_cast<int>(type); });
    if (count > 1) {
      const int devices = static_cast<int>(count);
      slowest.push_back({platform.types[type].name, devices, 1 + spread * expected_largest(devices)});
    }
  }
  return slowest;
}

} // namespace stagecraft
