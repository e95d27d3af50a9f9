// Loads several platforms without reading their device types again each time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "sim/platform/load_platform.hpp"

namespace stagecraft {

/// Device types from one source, by name.
using KnownTypes = std::map<std::string, DeviceType>;

/// load_platform() that takes device types from `known` where they are there, and adds those that it had to read.
Platform load_platform(const yaml::Node& document, const DeviceTypeSource& source, KnownTypes* known);

} // namespace stagecraft
