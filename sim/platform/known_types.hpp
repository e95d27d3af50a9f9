// Loading one platform after the other without reading their device types again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "sim/platform/load_platform.hpp"

namespace stagecraft {

/// Device types of one source by name.
using KnownTypes = std::map<std::string, DeviceType>;

/// load_platform(); types of the source that `known` holds are not read again, and others are added to it.
Platform load_platform(const yaml::Node& document, const DeviceTypeSource& source, KnownTypes* known);

} // namespace stagecraft
