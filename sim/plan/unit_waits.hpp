// How long replicas that share gradients or weights wait for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/plan/stage_costs.hpp"

namespace stagecraft {

/// What a unit's collectives take; of an all-reduce over groups, its time follows that of the reduction.
struct UnitSeconds {
  Seconds forward, recompute, backward; ///< computing, on the slowest replica
  Seconds gather, reduce;
};

/// From the first step of an iteration to the last reduction, of a stage that runs its micro-batches one after the
/// other and waits for nothing else: by the rules of the task graph (docs/model.md, "Shared weights").
Seconds seconds_of_units(const Sharding& sharding, const std::vector<UnitSeconds>& units, int micro_batches);

/// How much longer than to compute this takes, in an iteration; the collectives alone on their links.
Seconds wait_for_units(const Problem& problem, const Stage& stage, const StageCost& cost);

} // namespace stagecraft
