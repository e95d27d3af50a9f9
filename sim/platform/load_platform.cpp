// Loading a platform: read the file, turn it into vertices and links, check that every device reaches every other.
// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/load_platform.hpp"

#include "sim/platform/known_types.hpp"
#include "sim/platform/platform_file.hpp"

namespace stagecraft {

namespace {

Where where_of(const platform_file::File& file, int node) {
  auto group = file.groups.begin();
  for (; node >= static_cast<int>(group->names.size()); ++group) {
    node -= static_cast<int>(group->names.size());
  }
  return group->where;
}

void check_reachable(const platform_file::File& file, const Platform& platform) {
  const auto apart = platform_file::find_unreachable(platform);
  if (!apart) {
    return;
  }
  const Device& one = platform.devices[static_cast<size_t>(apart->first)];
  const Device& other = platform.devices[static_cast<size_t>(apart->second)];
  const bool one_vendor = platform.type_of(apart->first).vendor == platform.type_of(apart->second).vendor;
  // Links that join a node's devices alone end there: what leads out is the host's NIC, or one of each device.
  const std::string allowed =
      !one_vendor ? "devices of two vendors where each reaches its host, and the hosts each other"
      : one.node == other.node
          ? "links and a network that join every two devices"
          : "links from the devices to their host, whose NIC is the way out (pcie-switch or host-link, beside nvswitch "
            "or nvlink-pair), or a NIC for each device (network: nic: device)";
  throw InputError(where_of(file, other.node),
                   "devices '" + one.name + "' and '" + other.name + "' cannot reach each other; allowed: " + allowed);
}

} // namespace

Platform load_platform(const yaml::Node& document, const DeviceTypeSource& source) {
  return load_platform(document, source, nullptr);
}

Platform load_platform(const yaml::Node& document, const DeviceTypeSource& source, KnownTypes* known) {
  const platform_file::File file = platform_file::read(document, source, known);
  Platform platform = platform_file::build(file);
  check_reachable(file, platform);
  return platform;
}

} // namespace stagecraft
