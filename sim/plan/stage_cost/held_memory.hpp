// What a device of a stage keeps in memory for a replica's share of a micro-batch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/plan/stage_cost/passes/tensor_parallel.hpp"
#include "sim/plan/stage_cost/stage_costs.hpp"

namespace stagecraft {

/// What one device of a stage holds for a whole micro-batch.
struct HeldMemory {
  double parameters = 0;
  double of_experts = 0; ///< the part of them that are experts', which ranks share
  /// Where replicas step whole tensors: what each steps of all but experts, and of these.
  std::vector<StepsAlike> stepped, stepped_experts;
  Bytes resident;                   ///< sum of Operator::resident_bytes
  Bytes kept;                       ///< what is not made again, and what is read to make that
  Bytes read_again;                 ///< the part of `kept` that only recompute reads
  Bytes workspace;                  ///< what recompute makes again, of one segment at a time
  Bytes recomputed;                 ///< of all segments
  std::optional<Bytes> for_weights; ///< if it is known
  Bytes for_deferred;               ///< of the weights whose gradients are computed after all backwards
  Bytes gathered, gathered_again;   ///< tokens of all ranks that share experts: by any pass, and by recompute
  Bytes choices, choices_again;     ///< of these tokens, of any number of bytes
  Bytes placeholders;               ///< empty gradients, one for each shape of a product's weights
};

/// What a device of `stage` holds, its tensors divided as `split` says; where the model's file gives amounts, these.
HeldMemory held_by(const Problem& problem, const Stage& stage, const TensorSplit& split);

/// Replicas that share states (and what else `Training::sharding` says) of dense layers; 1: none.
int sharing_replicas(const Training& training, const Stage& stage);

/// Those that share what belongs to experts: of as many only those that have the same ones.
int sharing_experts(const Training& training, const Stage& stage);

/// What a replica has of that which replicas share, to the part that stage_memory() counts on: of what it holds of
/// dense layers and of experts, by their numbers of parameters; of whole tensors, as much as the one that has most.
double part_of_shared(const Training& training, const Stage& stage, const HeldMemory& held);

/// What a device of a replica holds for its `share` of a micro-batch, of which `incoming` and `outgoing` cross its
/// borders.
StageMemory memory_of_replica(const Problem& problem, const Stage& stage, const HeldMemory& held,
                              const std::vector<ShardUnit>& units, Bytes incoming, Bytes outgoing, double share);

} // namespace stagecraft
