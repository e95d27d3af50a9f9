// What the vertices of a platform are called.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/platform/platform.hpp"

namespace stagecraft {

/// What a vertex is, without its node and number: "device", "host", "nvswitch", "fabric".
std::string name_of_kind(const Vertex& vertex);

} // namespace stagecraft
