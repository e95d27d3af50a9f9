// SPDX-License-Identifier: Apache-2.0
#include "sim/timeline/device_names.hpp"

namespace stagecraft {

std::vector<std::string> device_names(const TaskGraph& graph, const Platform& platform) {
  std::vector<std::string> names;
  for (std::size_t device = 0; device < graph.devices.size(); ++device) {
    const int count = graph.stands_for(device);
    names.push_back(platform.devices[static_cast<std::size_t>(graph.devices[device])].name +
                    (count > 1 ? " x " + std::to_string(count) : ""));
  }
  return names;
}

} // namespace stagecraft
