// A closed-form estimate of the period of a pipeline, whether or not it empties between iterations.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/plan/stage_cost/stage_costs.hpp"

namespace stagecraft {

/// What an estimate must know of a schedule: whether its pipeline empties between iterations, and when weights change.
struct Pace {
  bool flushes = true;
  bool steps_each_micro_batch = false; ///< not once per iteration
  bool steps_late = false;             ///< an iteration later, so that gradients are reduced beside the next iteration
  bool predicts_weights = false;       ///< before each forward
};

/// With a flush estimate_iteration(). Without one the period of the steady state: the most of what a device does in an
/// iteration, what a link carries, and what a stage waits for the gradients of the micro-batches that it has sent ahead
/// (docs/model.md, "Estimate").
Seconds estimate_period(const Problem& problem, const Plan& plan, const PlanCost& cost, const Pace& pace);

/// Seconds in which the replicas of a stage reduce their gradients, those of equal shards together, by the algorithm
/// that the training names; 0 where there is one replica.
Seconds seconds_to_reduce(const Problem& problem, const Stage& stage, const StageCost& cost);
/// Seconds of a transfer over the slowest pair of devices of two stages, in either direction.
Seconds slowest_transfer(const Problem& problem, const StageCost& from, const StageCost& to, Bytes bytes);

} // namespace stagecraft
