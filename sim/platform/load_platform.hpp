// Reading platforms and device types: docs/formats/platform.md and docs/formats/device.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/format/yaml.hpp"
#include "sim/platform/platform.hpp"

namespace stagecraft {

/// Returns the document of the device type called `name`, or throws InputError blaming `where`.
using DeviceTypeSource = std::function<yaml::Node(const std::string& name, const Where& where)>;

/// The file `folder`/NAME.yaml of the device type called `name`; InputError blaming `where`, with the nearest of the
/// names there, when there is none.
std::filesystem::path find_device_type(const std::filesystem::path& folder, const std::string& name,
                                       const Where& where);

/// A source that reads the file that find_device_type() gives.
DeviceTypeSource device_types_in(const std::filesystem::path& folder);

/// Reads one device type. If it is derived from another, `source` gives that one. Throws InputError.
DeviceType load_device_type(const yaml::Node& document, const DeviceTypeSource& source = {});

/// Reads a platform. Device types come from its own `device_types` key first, then from `source`. Throws InputError;
/// also when a device cannot reach another (naming the two).
Platform load_platform(const yaml::Node& document, const DeviceTypeSource& source);

/// A star: `devices` equal devices, each joined to one switch by a private link per direction. A transfer between two
/// of them has the given bandwidth and latency; with infinite bandwidth it takes only the latency.
Platform make_star_platform(const DeviceType& type, int devices, BytesPerSecond bandwidth, Seconds latency);

/// Devices of one type in a star, with the bandwidth of each one's link.
struct StarDevices {
  DeviceType type;
  int count = 1;
  BytesPerSecond bandwidth;
};
/// The same with devices of several types, in this order. A transfer has the lower bandwidth of its two ends.
Platform make_star_platform(const std::vector<StarDevices>& groups, Seconds latency);

} // namespace stagecraft
