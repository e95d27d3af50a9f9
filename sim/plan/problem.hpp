// The planning problem: a model, its costs for one micro-batch size, and the platform's devices and paths.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "sim/cost/cost_model.hpp"
#include "sim/cost/memory.hpp"
#include "sim/platform/route.hpp"
#include "sim/workload/training/training.hpp"

namespace stagecraft {

/// Sums over the first k operators in topological order, k = 0 … n; differences are sums over ranges.
struct Prefix {
  std::vector<std::vector<double>>
      seconds; ///< [device type][k]: forward + backward (+ recompute); infinite from a missing kernel on
  std::vector<double> parameters;     ///< [k]
  std::vector<double> resident_bytes; ///< [k]
  std::vector<Activations> stash;     ///< [k]
  std::vector<double> cut_bytes;      ///< [k]: distinct tensors made before k and needed from k on, each once
};

/// Costs of one micro-batch. The referenced values must outlive it.
struct Problem {
  const ModelGraph& model;
  const Platform& platform;
  const CostModel& cost;
  const Training& training;
  Router& router;
  int micro_batches = 1;
  double samples = 1;             ///< samples per micro-batch
  bool divisible_at_will = false; ///< samples are fractions of a profiled minibatch, not whole items
  /// [device type][operator], seconds; infinite if the type lacks the kernel.
  std::vector<std::vector<double>> forward, backward_input, backward_weight;
  /// [operator]: whether the training runs it forward again before backward, in the stages that it may be in.
  std::vector<char> recomputed;
  /// [operator]: what is restored together just before its backward, by number: operators of one number in a stage;
  /// all have 0 unless the training recomputes block by block, or what it names as backward reaches it.
  std::vector<int> segments;
  std::vector<int> block_numbers; ///< [operator]: as of the model, if recompute restores block by block; else empty
  /// What seconds() and stash() answer; planners ask them again and again.
  std::vector<std::vector<double>> whole; ///< [device type][operator]
  std::vector<Activations> stashes;       ///< [operator]
  Prefix prefix;

  /// Forward + backward time, and forward again if planners count it; infinite without the kernel.
  double seconds(int type, OperatorId op) const { return whole[type][op]; }
  /// Bytes of an operator's output for one micro-batch.
  Bytes output_bytes(OperatorId op) const;
  Bytes stash_bytes(OperatorId op) const;
  /// Bytes that the weight gradient of an operator needs after the input's gradient. If the model does not say: the
  /// operator's stash, or nothing without parameters.
  Bytes weight_bytes(OperatorId op) const;
  bool recomputes(OperatorId op) const { return recomputed[static_cast<std::size_t>(op)] != 0; }
  /// Whether planners count the operator's forward twice. Where only the first blocks of each stage run again, which
  /// they are is known when the stages are: planners count the time of none, and the memory as if all ran again.
  bool counts_again(OperatorId op) const { return recomputes(op) && training.recompute.first == 0; }
  /// Activations that an operator adds to its stage, with the training's recompute, without the stage's input. An
  /// operator that runs again holds nothing, but recompute restores its stash. Any other holds of its stash what no
  /// operator makes again, and also its output if an operator that runs again reads it (which is slightly too much if
  /// that reader is in another stage; if the one that makes it again is, the stage's input has what it made).
  /// Block by block an operator that runs again holds its output where another block reads it; what one block restores
  /// at a time does not add up over operators, and only the cost of a whole stage has it.
  const Activations& stash(OperatorId op) const { return stashes[op]; }
  /// Bytes fed to each source operator for one micro-batch.
  Bytes input_bytes() const;
  /// Bytes of the distinct tensors that operators in `inside` make and operators outside need.
  Bytes cut_bytes(const std::vector<char>& inside) const;
  /// Bytes that enter and leave a stage of the operators `inside` for one micro-batch: the model's input once per
  /// source, each tensor once.
  struct Border {
    Bytes incoming, outgoing;
  };
  Border border(const std::vector<char>& inside) const;
  PathCost path(DeviceId from, DeviceId to) const { return router.cost(from, to); }
  int type_index(DeviceId device) const { return platform.devices[static_cast<std::size_t>(device)].type; }
  /// The types of the devices, each once, ascending.
  std::vector<int> types_of(const std::vector<DeviceId>& devices) const;
};

Problem make_problem(const ModelGraph& model, const Platform& platform, const CostModel& cost, const Training& training,
                     Router& router, int micro_batches);

/// The part of an operator's stash that others of its segment make again, where `again` says which run again. An
/// attention that runs again keeps its output, as Megatron-LM's checkpoint of the core of attention does (Korthikanti
/// et al. 2023, section 5).
double part_made_again(const Problem& problem, OperatorId op, const std::function<bool(OperatorId)>& again);

/// What a stage holds and passes on, for one micro-batch.
struct StageAmounts {
  double parameters = 0;
  Bytes resident; ///< sum of Operator::resident_bytes
  Activations stash;
  Bytes incoming, outgoing;
};
/// stage_memory(), or the model's own figures if its file gives memory as a whole.
StageMemory memory_of_stage(const Problem& problem, const StageAmounts& amounts, Recompute recompute);

/// "operator 'conv1' (convolution) has no kernel for fp16 on device type 'p100'": the first such operator, or "".
std::string missing_kernel(const Problem& problem, int type, const std::vector<OperatorId>& operators);

} // namespace stagecraft
