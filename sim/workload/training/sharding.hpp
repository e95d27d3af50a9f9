// How replicas share what they would else all hold: ZeRO (Rajbhandari et al. 2020) and FSDP (Zhao et al. 2023).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace stagecraft {

/// What replicas of a stage share, each having a part: each stage of ZeRO shares more.
enum class Zero { none = 0, states = 1, gradients = 2, weights = 3 };

/// When a replica gives gathered weights up again.
enum class Reshard { after_forward, after_backward, after_step };

struct ReshardRow {
  std::string_view name, help;
  Reshard reshard;
};
inline constexpr std::array kReshards = {
    ReshardRow{"after-forward", "weights are gathered for each forward and for each backward", Reshard::after_forward},
    ReshardRow{"after-backward", "weights are gathered for a forward and stay until a backward has used them",
               Reshard::after_backward},
    ReshardRow{"after-step", "weights are gathered once in an iteration", Reshard::after_step},
};

/// Whose gradients are reduced.
enum class Reduce { each_micro_batch, last_micro_batch };

struct ReduceRow {
  std::string_view name, help;
  Reduce reduce;
};
inline constexpr std::array kReduces = {
    ReduceRow{"each-micro-batch", "each backward's, so that a replica accumulates its own part only",
              Reduce::each_micro_batch},
    ReduceRow{"last-micro-batch", "the last backward's, after each replica has accumulated all of them",
              Reduce::last_micro_batch},
};

/// How replicas get the parameters that each other's steps have made, where each holds all of them.
enum class Gather { after_step, before_use, broadcasts };

struct GatherRow {
  std::string_view name, help;
  Gather gather;
};
inline constexpr std::array kGathers = {
    GatherRow{"after-step", "all of a stage's parameters at once, before its first forward", Gather::after_step},
    GatherRow{"before-use", "each unit's before the first forward that needs them", Gather::before_use},
    GatherRow{"broadcasts",
              "each replica steps whole tensors, of gradients that all have added up, and broadcasts them after it",
              Gather::broadcasts},
};

constexpr const GatherRow& row_of(Gather gather) { return kGathers[static_cast<std::size_t>(gather)]; }

/// Into which numbers a replica makes its part of the weights before they are gathered.
enum class QuantizedWeights { none, int8, fp8 };

struct QuantizedWeightsRow {
  std::string_view name, help;
  QuantizedWeights numbers;
};
inline constexpr std::array kQuantizedWeights = {
    QuantizedWeightsRow{"none", "none: weights are gathered as they are stored", QuantizedWeights::none},
    QuantizedWeightsRow{"int8", "blocks of 8-bit integers with a scale each, as ZeRO++ does (qwZ)",
                        QuantizedWeights::int8},
    QuantizedWeightsRow{"fp8", "8 bits of those products that are computed in them, as TorchTitan does",
                        QuantizedWeights::fp8},
};
/// Numbers that share a scale of 4 bytes: DeepSpeed's quantiser takes as many as divide a tensor, up to this
/// (CUDAQuantizer, target_group_size).
inline constexpr double kQuantizedBlock = 8000;
/// Bytes of a number with its part of the scale: of weights in 8 bits, of gradients in 4.
inline constexpr double kInt8Bytes = 1 + 4 / kQuantizedBlock, kInt4Bytes = 0.5 + 4 / kQuantizedBlock;

/// As a study gives it.
struct ShardingRule {
  Zero zero = Zero::none;
  int group = 0; ///< replicas that share; other groups of as many hold the same (HSDP); 0: all replicas
  std::optional<Reshard> reshard; ///< nothing: after forward, or, in a pipeline, after the step
  std::optional<Reduce> reduce;   ///< nothing: each micro-batch's, or, in a pipeline, the last one's
  Gather gather = Gather::after_step;
  int prefetch = 1;                     ///< units whose weights are gathered before the one that computes has ended
  std::optional<int> prefetch_backward; ///< the same in backward; nothing: as many
  /// Of each product of experts that ranks share, what is gathered beyond the first bucket waits for its unit to begin.
  bool late_experts = false;
  /// What a unit gathered is copied to tensors of its own before it computes, as FSDP2 does.
  bool copied_out = false;
  // ZeRO++ (Wang et al. 2023).
  QuantizedWeights quantized_weights = QuantizedWeights::none;
  int secondary = 0; ///< replicas that share a second copy of the weights, from which backward gathers; 0: none
  bool quantized_gradients = false; ///< gradients are reduced by two all-to-alls of 4 bits
};

/// As a training has it. Gradients are reduced to the parts, and parameters gathered after the step, or before a unit
/// needs them.
struct Sharding {
  Zero zero = Zero::none;
  int replicas = 1;   ///< that share, as planners count on before a stage has replicas of its own
  int per_device = 1; ///< replicas that a device stands for, where a planner sees groups as devices
  int group = 0;      ///< as in ShardingRule
  Reshard reshard = Reshard::after_forward;
  Reduce reduce = Reduce::each_micro_batch;
  Gather gather = Gather::after_step;
  int prefetch = 1;                                            ///< as in ShardingRule
  std::optional<int> prefetch_backward;                        ///< as in ShardingRule
  bool late_experts = false;                                   ///< as in ShardingRule
  bool copied_out = false;                                     ///< as in ShardingRule
  QuantizedWeights quantized_weights = QuantizedWeights::none; ///< these three as in ShardingRule
  int secondary = 0;
  bool quantized_gradients = false;

  bool on() const { return zero != Zero::none; }
  /// Stages are divided into units, which reduce or gather by themselves.
  bool by_unit() const { return zero >= Zero::gradients || gathers_units(); }
  /// Replicas add up all gradients, and each broadcasts the tensors that it has stepped.
  constexpr bool broadcasts() const { return zero == Zero::states && gather == Gather::broadcasts; }
  /// Weights are gathered unit by unit, where a pass needs them.
  bool gathers_units() const { return on() && (zero == Zero::weights || gather == Gather::before_use); }
  /// Units that are gathered before the one that computes has ended, forward or in backward.
  int ahead(bool backward) const { return backward ? prefetch_backward.value_or(prefetch) : prefetch; }
  /// Beside gathered units a replica holds its part of the weights only.
  bool parts_weights() const { return zero == Zero::weights && reshard == Reshard::after_forward; }
  /// Between micro-batches a replica holds its part of the gradients only.
  bool parts_gradients() const { return zero >= Zero::gradients && reduce == Reduce::each_micro_batch; }
  /// Of `count` replicas, those that share.
  int sharing(int count) const { return group > 0 ? group : count; }
};

} // namespace stagecraft
