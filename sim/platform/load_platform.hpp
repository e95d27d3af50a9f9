// Reading platforms and device types: docs/formats/platform.md and docs/formats/device.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/yaml.hpp"
#include "sim/platform/platform.hpp"

namespace stagecraft {

/// Gives the document of the device type called `name`, or throws InputError blaming `where`.
using DeviceTypeSource = std::function<yaml::Node(const std::string& name, const Where& where)>;

/// A source that reads `folder`/NAME.yaml and lists the files there when NAME is unknown.
DeviceTypeSource device_types_in(const std::filesystem::path& folder);

/// Reads one device type; one that is derived from another finds that in `source`. Throws InputError.
DeviceType load_device_type(const yaml::Node& document, const DeviceTypeSource& source = {});

/// Reads a platform; device types come from its own `device_types` key first, then from `source`. Every device can
/// reach every other, or InputError names two that cannot.
Platform load_platform(const yaml::Node& document, const DeviceTypeSource& source);

/// `devices` equal devices on one private link per device and direction, joined by a switch: transfers between two of
/// them have `bandwidth` and the latency `latency`. An infinite bandwidth means that transfers take only the latency.
Platform make_star_platform(const DeviceType& type, int devices, BytesPerSecond bandwidth, Seconds latency);

/// Devices of one type of a star, each on a link of this bandwidth.
struct StarDevices {
  DeviceType type;
  int count = 1;
  BytesPerSecond bandwidth;
};
/// The same with devices of several types, in this order: a transfer has the lesser bandwidth of its two ends.
Platform make_star_platform(const std::vector<StarDevices>& groups, Seconds latency);

} // namespace stagecraft
