// A summary of a platform: its nodes and what joins them, its devices, and lone transfers between them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/platform/platform.hpp"

namespace stagecraft {

/// Tables for a terminal: nodes that are alike in one row, with links inside them and into the network; devices; lone
/// transfers between the first ones. What is left out is said.
std::string platform_summary(const Platform& platform, bool color);

} // namespace stagecraft
