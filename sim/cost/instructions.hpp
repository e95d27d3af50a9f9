// Instructions that a GPU issues, which bound kernels that find their place and compare more than they move.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "sim/platform/platform.hpp"

namespace stagecraft {

/// Instructions of all threads that a device issues a second; nothing where it states no rate of element-wise kernels.
std::optional<double> instructions_issued(const DeviceType& type);

/// What so many instructions of PyTorch's kernels for GPUs take; nothing on devices of other vendors than NVIDIA and
/// AMD, which run others.
Seconds instruction_time(double instructions, const DeviceType& type);

} // namespace stagecraft
