// What every rank sends every other one over a link for each pair, as a part of other algorithms.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/collective/flow.hpp"

namespace stagecraft {

/// Whether every two of the devices have a link of their own in each direction, as in a full mesh of Infinity Fabric.
bool is_full_mesh(const std::vector<DeviceId>& devices, Router& router);

/// Adds the links of all pairs of a full mesh, each of which carries an r-th of the buffer in a reduce-scatter or an
/// all-gather; returns the longest latency.
HopLatency add_direct(const std::vector<DeviceId>& devices, FlowBuilder& flow);

} // namespace stagecraft
