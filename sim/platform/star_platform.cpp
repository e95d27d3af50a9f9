// The simplest platform: devices around one switch.
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "sim/platform/load_platform.hpp"

namespace stagecraft {

Platform make_star_platform(const std::vector<StarDevices>& groups, Seconds latency) {
  check(!groups.empty() && latency.value >= 0, "a star platform of impossible size or speed");
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  Platform platform;
  Host host;
  host.core_speed = FlopsPerSecond{kNoLimit};
  host.memory = Bytes{kNoLimit};
  host.memory_bandwidth = host.disk_bandwidth = BytesPerSecond{kNoLimit};
  platform.nodes = {{"node", host}};
  std::vector<BytesPerSecond> bandwidths; // per device
  for (const StarDevices& group : groups) {
    check(group.count > 0 && group.bandwidth.value > 0, "a star platform of impossible size or speed");
    const int type = static_cast<int>(platform.types.size());
    platform.name += (type == 0 ? "" : " + ") + std::to_string(group.count) + " x " + group.type.name;
    platform.types.push_back(group.type);
    for (int i = 0; i < group.count; ++i) {
      const auto device = static_cast<DeviceId>(platform.devices.size());
      platform.devices.push_back({"node/" + group.type.name + "-" + std::to_string(i), type, 0});
      platform.vertices.push_back({Vertex::Kind::device, platform.devices.back().name, device});
      bandwidths.push_back(group.bandwidth);
    }
  }
  platform.vertices.push_back({Vertex::Kind::host, "node/host", 0});
  const int center = static_cast<int>(platform.vertices.size());
  platform.vertices.push_back({Vertex::Kind::internal_switch, "node/switch", -1});
  for (std::size_t device = 0; device < bandwidths.size(); ++device) {
    const std::string& name = platform.devices[device].name;
    const int vertex = static_cast<int>(device);
    platform.links.push_back({name + ">node/switch", vertex, center, bandwidths[device], latency});
    platform.links.push_back({"node/switch>" + name, center, vertex, bandwidths[device], Seconds{0}});
  }
  return platform;
}

Platform make_star_platform(const DeviceType& type, int devices, BytesPerSecond bandwidth, Seconds latency) {
  return make_star_platform({{type, devices, bandwidth}}, latency);
}

} // namespace stagecraft
