// What of a machine the harness can use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "calibrate/gpu/device/session.hpp"

namespace stagecraft::gpu {

/// A line for the device, each library, NVML, and parts of the device; where something is missing, why.
std::vector<std::string> probe(const Session& session);

} // namespace stagecraft::gpu
