// Key `price` of a study: what devices cost, in place of what the catalogue says. docs/formats/study.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/base/format/yaml.hpp"
#include "sim/platform/platform.hpp"

namespace stagecraft {

/// Reads a price, "2.49 USD/h", for the one device type of the platform, or a mapping of types to prices, and sets
/// them. Throws InputError.
void take_prices(const yaml::Node& node, Platform& platform);

} // namespace stagecraft
