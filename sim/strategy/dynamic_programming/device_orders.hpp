// Which device each stage of a pipeline gets: the search over all orders of devices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/strategy/dynamic_programming/ideal_pipeline.hpp"

namespace stagecraft {

/// Devices from fastest to slowest for the whole model, ties in the order given.
std::vector<DeviceId> fastest_first(const Problem& problem, std::vector<DeviceId> devices);

/// The plan of least bottleneck over all antichain states and all orders of the request's devices, any of them left
/// out, one stage each; its objective is the bottleneck. States count how many devices of each class are used, so equal
/// devices cost no permutations. With very many classes only the order fastest first is tried, and the note says so.
PlanResult best_over_orders(const PlanRequest& request);

} // namespace stagecraft
