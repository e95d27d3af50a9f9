// The simplest platform: equal devices round one switch.
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "sim/platform/load_platform.hpp"

namespace stagecraft {

Platform make_star_platform(const DeviceType& type, int devices, BytesPerSecond bandwidth, Seconds latency) {
  check(devices > 0 && bandwidth.value > 0 && latency.value >= 0, "a star platform of impossible size or speed");
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  Platform platform;
  platform.name = std::to_string(devices) + " x " + type.name;
  platform.types = {type};
  Host host;
  host.core_speed = FlopsPerSecond{kNoLimit};
  host.memory = Bytes{kNoLimit};
  host.memory_bandwidth = host.disk_bandwidth = BytesPerSecond{kNoLimit};
  platform.nodes = {{"node", host}};
  for (DeviceId device = 0; device < devices; ++device) {
    platform.devices.push_back({"node/" + type.name + "-" + std::to_string(device), 0, 0});
    platform.vertices.push_back({Vertex::Kind::device, platform.devices.back().name, device});
  }
  platform.vertices.push_back({Vertex::Kind::host, "node/host", 0});
  const int center = devices + 1;
  platform.vertices.push_back({Vertex::Kind::internal_switch, "node/switch", -1});
  for (DeviceId device = 0; device < devices; ++device) {
    const std::string& name = platform.devices[static_cast<size_t>(device)].name;
    platform.links.push_back({name + ">node/switch", device, center, bandwidth, latency});
    platform.links.push_back({"node/switch>" + name, center, device, bandwidth, Seconds{0}});
  }
  return platform;
}

} // namespace stagecraft
