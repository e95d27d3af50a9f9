// The units of a stage: what replicas that share gradients or weights reduce or gather at a time, as FSDP's units.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/plan/group_passes.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/problem.hpp"

namespace stagecraft {

/// Operators of a stage that follow one another. The bytes are those of a device's shard, of all replicas' parts
/// together.
struct ShardUnit {
  std::size_t begin = 0, end = 0; ///< among the stage's operators
  Bytes weights;                  ///< gathered; those that are not trained too
  Bytes gradients;                ///< reduced
  /// The same of experts that ranks share, among the replicas that have the same ones.
  Bytes expert_weights{}, expert_gradients{};

  Bytes all_weights() const { return weights + expert_weights; }
  Bytes all_gradients() const { return gradients + expert_gradients; }
};

/// The parts of a replica's passes that its units take, [unit] each.
struct UnitParts {
  std::vector<double> forward, backward, backward_input, backward_weight, recompute;
};

/// Each numbered block is a unit, and so is what stands before, between or after them, as TorchTitan wraps a model. A
/// model without numbered blocks has a unit for each operator with weights. Where weights are not shared, units that
/// are smaller than the training's bucket of gradients count together; without buckets all do. None where nothing is
/// reduced or gathered by unit, or for a stage of one replica.
std::vector<ShardUnit> shard_units(const Problem& problem, const Stage& stage, const TensorSplit& split);

/// The parts by what operators take; equal parts of a pass that takes no time.
UnitParts parts_of(const std::vector<ShardUnit>& units, const OperatorSeconds& seconds);

/// What a replica does with a unit.
enum class UnitPass { forward, recompute, backward, weight };
struct UnitStep {
  UnitPass pass = UnitPass::forward;
  int unit = 0;
};

/// [step] of a replica, in the order in which it runs them in an iteration: whether the unit's weights must be gathered
/// for it. They stay where the rule says, or where the unit's backward is the next step.
std::vector<char> steps_that_gather(Reshard reshard, const std::vector<UnitStep>& steps);

/// [step]: whether the unit's gradients are reduced after it; `completes` is the pass that completes them.
std::vector<char> steps_that_reduce(Reduce reduce, const std::vector<UnitStep>& steps, UnitPass completes);

/// Units whose gradients are complete and not yet reduced: the step after so many waits for the first.
inline constexpr std::size_t kUnitsToReduce = 2;

/// What a replica holds beside its parts: the weights of units that are gathered at a time, and the gradients of one
/// that computes and one that is being reduced.
Bytes unit_buffers(const Sharding& sharding, const std::vector<ShardUnit>& units);

} // namespace stagecraft
