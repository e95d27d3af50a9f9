// Who is who in a plan: each rank with its coordinates, its device and its way into the network.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/app/common/output.hpp"
#include "sim/plan/plan.hpp"

namespace stagecraft {

/// A device of a plan, as the first of its stages has it.
struct PlanRank {
  DeviceId device = 0;
  int pipeline = 0, data = 0, context = 0, tensor = 0, expert = 0; ///< its number among the ranks of each dimension
  std::string nic;         ///< the link by which it enters the network; "" where no other node is
  std::vector<int> stages; ///< all that it has
};

/// The devices in use, by pipeline rank, replica and tensor rank.
std::vector<PlanRank> ranks_of(const Plan& plan, const Platform& platform);

/// Writes them as a table, or as JSON.
void emit_ranks(const OutputOptions& options, const Plan& plan, const Platform& platform);

} // namespace stagecraft
