// How long replicas that share gradients or weights wait for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/plan/stage_cost/stage_costs.hpp"

namespace stagecraft {

/// What a unit's collectives take.
struct UnitSeconds {
  Seconds forward, recompute, backward; ///< computing, on the slowest replica
  Seconds gather, reduce;
  Seconds gather_late{};                  ///< of `gather`, its end, which begins no earlier than the unit
  Seconds reduce_experts{};               ///< of `reduce`, its end
  Seconds add_up{}, add_up_experts{};     ///< over groups, behind the reductions, and beside those of the next unit
  Seconds gather_again{};                 ///< for what follows a forward, if from a second copy
  Seconds dequantize{};                   ///< computing, after a gather
  Seconds leave{}, arrive{};              ///< of its activations; 0: they stay
  std::size_t steps_away = kUnitsToLeave; ///< that these have for either
  Seconds fetch{};                        ///< a copy from the host before a gather, where weights rest there
  Seconds leave_gradients{};              ///< a copy to the host behind a reduction
};

/// From the first step of an iteration to the last reduction, of a stage that runs its micro-batches one after the
/// other and waits for nothing else: by the rules of the task graph (docs/model.md, "Shared weights"). `weaves`: a
/// unit's recompute stands before its backward.
Seconds seconds_of_units(const Sharding& sharding, const std::vector<UnitSeconds>& units, int micro_batches,
                         bool weaves);

/// How much longer than to compute this takes, in an iteration; the collectives alone on their links.
Seconds wait_for_units(const Problem& problem, const Stage& stage, const StageCost& cost);

} // namespace stagecraft
