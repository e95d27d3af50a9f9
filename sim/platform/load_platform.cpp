// Loading a platform: read the file, lay it out, check that every device reaches every other.
// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/load_platform.hpp"

#include "sim/platform/platform_file.hpp"

namespace stagecraft {

Platform load_platform(const yaml::Node& document, const DeviceTypeSource& source) {
  const platform_file::File file = platform_file::read(document, source);
  Platform platform = platform_file::build(file);
  if (const auto apart = platform_file::find_unreachable(platform)) {
    const auto name = [&](DeviceId device) { return platform.devices[static_cast<size_t>(device)].name; };
    const bool vendors = platform.type_of(apart->first).vendor != platform.type_of(apart->second).vendor;
    throw InputError(
        document.find("nodes")->where,
        "devices '" + name(apart->first) + "' and '" + name(apart->second) + "' cannot reach each other; " +
            (vendors ? "allowed: two vendors' devices where each reaches its host, and the hosts each other"
                     : "allowed: links and a network that join every two devices"));
  }
  return platform;
}

} // namespace stagecraft
