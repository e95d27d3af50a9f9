// The units of a stage: what replicas that share gradients or weights reduce or gather at a time, as FSDP's units.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/plan/problem.hpp"
#include "sim/plan/stage_cost/passes/group_passes.hpp"

namespace stagecraft {

/// The part of weights' bytes that is sent where replicas gather them, made smaller before.
struct GatheredPart {
  double dense = 1, experts = 1; ///< of weights that all replicas have alike, of those of experts that ranks share
  double of(bool experts_alone) const { return experts_alone ? experts : dense; }
};

/// The same of all weights of a stage.
GatheredPart gathered_part(const Problem& problem, const Stage& stage, const TensorSplit& split);

/// The least steps that activations have to leave: two buffers. Where activations of more blocks of the stage stay,
/// there is room for as many that are on their way, as Transformer Engine counts on (cpu_offload.py,
/// DefaultOffloadSynchronizer).
inline constexpr std::size_t kUnitsToLeave = 2;

/// Operators of a stage that follow one another. The bytes are those of a device's shard, of all replicas' parts
/// together.
struct ShardUnit {
  std::size_t begin = 0, end = 0; ///< among the stage's operators
  Bytes weights;                  ///< gathered; those that are not trained too
  Bytes gradients;                ///< reduced
  /// The same of experts that ranks share, among the replicas that have the same ones.
  Bytes expert_weights{}, expert_gradients{};
  Bytes late_weights{}; ///< of experts' weights, those that are gathered no earlier than the unit begins
  GatheredPart gathered{};
  double reduced = 1; ///< the part of gradients' bytes that is sent
  /// Activations of a whole micro-batch that are left to the host from forward until backward, and the part of them
  /// that is kept only for recompute to read.
  Bytes stash{}, stash_read_again{};
  std::size_t blocks_that_stay = 0; ///< where these leave: numbered blocks of the stage whose activations do not

  /// Steps that activations have to leave, and to come back; 0: they stay.
  std::size_t steps_away() const { return stash.value > 0 ? std::max(kUnitsToLeave, blocks_that_stay) : 0; }
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
/// reduced, gathered or left to the host by unit.
std::vector<ShardUnit> shard_units(const Problem& problem, const Stage& stage, const TensorSplit& split);

/// Whether replicas of the stage gather weights or reduce gradients by unit.
bool shares_by_unit(const Training& training, const Stage& stage);

/// The parts by what operators take; equal parts of a pass that takes no time.
UnitParts parts_of(const std::vector<ShardUnit>& units, const OperatorSeconds& seconds);

/// What a replica does with a unit.
enum class UnitPass { forward, recompute, backward, weight };
struct UnitStep {
  UnitPass pass = UnitPass::forward;
  int unit = 0;
  int fill = 0; ///< of the pipeline, within the iteration
};

/// [step] of a replica, in the order in which it runs them in an iteration: whether the unit's weights must be gathered
/// for it. They stay where the rule says, or where the unit's backward is the next step, but not from one fill of the
/// pipeline to the next.
std::vector<char> steps_that_gather(Reshard reshard, const std::vector<UnitStep>& steps);

/// [step]: whether the unit's gradients are reduced after it; `completes` is the pass that completes them. The last
/// micro-batch is that of each fill of the pipeline.
std::vector<char> steps_that_reduce(Reduce reduce, const std::vector<UnitStep>& steps, UnitPass completes);

/// Units whose gradients are complete and not yet reduced: the step after so many waits for the first.
inline constexpr std::size_t kUnitsToReduce = 2;

/// A unit's activations leave after the step `from`, its forward, and are back before the step `to`, the first that
/// needs them: steps of a replica in an iteration. The step `gone_by` waits until they are away, and they start back
/// when the step `back_after` has ended.
struct UnitTrip {
  int unit = 0;
  std::size_t from = 0, to = 0, gone_by = 0, back_after = 0;
};
/// The trips of the activations of units of which some leave, in the order of their forwards. `steps_away`: [unit].
/// Those that a recompute reads start back one unit ahead of it. Steps are of one micro-batch where `micro_batches`
/// says the same of them. Activations that are needed before they could be away stay.
std::vector<UnitTrip> trips_of(const std::vector<UnitStep>& steps, const std::vector<std::int32_t>& micro_batches,
                               const std::vector<std::size_t>& steps_away);

/// What a replica of the stage holds beside its parts, but for activations: the weights of units that are gathered at a
/// time, and the gradients of one that computes and one that is being reduced or copied.
Bytes unit_buffers(const Training& training, const Stage& stage, const std::vector<ShardUnit>& units);

/// Activations of a whole micro-batch of units that leave or arrive just now, but for those that have room where the
/// activations of other blocks are to be.
Bytes trip_buffers(const std::vector<ShardUnit>& units);

} // namespace stagecraft
