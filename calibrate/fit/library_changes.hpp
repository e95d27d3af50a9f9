// Where NCCL changes its protocol or algorithm, by its published tuning.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "sim/platform/fits/measurements.hpp"
#include "sim/platform/platform.hpp"

namespace stagecraft::fit {

/// The bandwidth of a device's port among those of its node, as these times have it: the most that the largest two
/// sizes of a reduce-scatter or an all-gather show; 0: there are no two.
BytesPerSecond port_bandwidth(const std::vector<MeasuredCollective>& collectives);

/// Buffers, ascending, at which another line becomes the least of those that sim/collective/ has for the collective
/// among devices of this type below one switch. None for devices that NCCL is not for, and for collectives of which its
/// tuning says nothing.
std::vector<double> library_changes(const DeviceType& type, BytesPerSecond port, std::string_view op, int devices);

} // namespace stagecraft::fit
