// The communicators of a plan: which groups of devices exchange data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "sim/plan/stage_cost/stage_costs.hpp"

namespace stagecraft {

/// Groups of devices, each ascending, that add up the squares of their gradients to clip by the norm: a replica of the
/// whole model each, as far as all stages have as many; all devices where they have not, or where replicas share the
/// optimiser, so that none has all gradients.
std::vector<std::vector<DeviceId>> norm_groups(const PlanCost& cost, bool shards_optimizer);

/// In how many communicators each device takes part, one for each group of several devices that it exchanges data with:
/// its tensor-parallel replica, those that reduce the same gradients, all stages among which it sends or receives, and,
/// where gradients are clipped, its norm group. A group of several stages has one. Devices in none are left out.
std::map<DeviceId, int> communicators_of(const PlanCost& cost, bool clips_gradients, bool shards_optimizer);

} // namespace stagecraft
