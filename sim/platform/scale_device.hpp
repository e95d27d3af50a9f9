// A device type whose kernels are so many times as fast as another's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/platform/fits/kernel_fits.hpp"
#include "sim/platform/platform.hpp"

namespace stagecraft {

/// Scales rates, memory bandwidth and launches, and the fits on top of what scales them already. Nominal peaks, memory,
/// power and price stay.
void scale_kernels(DeviceType& type, const FitScale& scale);

} // namespace stagecraft
