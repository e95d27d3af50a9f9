// What a plan costs, stage by stage: times, bytes that cross, memory. Estimates, checks and task graphs start here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/plan/fold.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/problem.hpp"
#include "sim/plan/stage_cost/passes/group_passes.hpp"
#include "sim/plan/stage_cost/shard_units.hpp"
#include "sim/plan/stage_cost/whole_tensors.hpp"

namespace stagecraft {

/// What a device leaves to its host at a step, and where.
struct HostCost {
  Leg to_host, from_host; ///< without links where the platform has none
  Bytes gradients;        ///< copied there when all are complete; none where those of units are
  Bytes weights;          ///< copied back after the step
  Bytes moved;            ///< to and from the host's memory by the step
  Seconds step;           ///< by the device's equal part of the host's cores and memory
  BytesPerSecond memory;  ///< that part of the memory's bandwidth
  int node = 0;

  /// From complete gradients to weights on the device, where nothing else is under way.
  Seconds seconds() const {
    const auto copy = [](const Leg& leg, Bytes bytes) {
      return bytes.value > 0 ? leg.latency + bytes / leg.bandwidth : Seconds{0};
    };
    return copy(to_host, gradients) + step + copy(from_host, weights);
  }
};

/// Kernels that make what a unit's collectives send smaller, and back, on the stage's slowest device.
struct UnitKernels {
  Seconds before_gather, after_gather;          ///< by all replicas that share weights
  Seconds before_second_gather;                 ///< of the part that those have which share a second copy
  Seconds before_reduce, between, after_reduce; ///< before, between and after the two hops
};

/// What a pass's hand-over to the stages before and after it takes of its time: before it computes, with gathering what
/// its group got in parts, and behind.
struct HandOver {
  Seconds before, after;

  Seconds all() const { return before + after; }
};

/// One device of a stage, for one micro-batch: a replica, or one shard of a replica.
struct ReplicaCost {
  DeviceId device = 0;
  double share = 1;
  Seconds forward, backward_input, backward_weight; ///< with its tensor-parallel group's collectives, and hand-over
  Seconds overlap; ///< saved where both gradients are computed in one pass: by several streams, or by exchanges beside
  Seconds
      deferred{};    ///< of `backward_weight`, and saved in `overlap`: computed after all backwards, if these are whole
  Seconds recompute; ///< forward time of what runs again; 0 without recompute
  Seconds norm;      ///< per step: of its gradients, by which they are clipped; 0: they are not
  Seconds optimizer; ///< per step; with adding up what each device of the group has a term of, and with clipping
  Seconds prediction; ///< time to predict weights some steps ahead, in schedules that do so (XPipe)
  AtRest rest;
  HandOver forward_hand_over{}, backward_hand_over{}; ///< in `forward` and `backward_input`
  StageMemory memory;
  std::shared_ptr<const HostCost> host = nullptr; ///< null: its host steps nothing and gets nothing

  Seconds backward() const { return backward_input + backward_weight - overlap; } ///< both at once
  Seconds step() const { return norm + optimizer; }                               ///< all of it
  Seconds busy() const { return forward + backward() + deferred + recompute; }
};

/// Gradients that are reduced together.
struct GradientBucket {
  double part = 1;       ///< the fraction of the backward pass in which they are computed, on the first device
  Bytes bytes;           ///< bytes per shard
  std::size_t first = 0; ///< the first operator of the stage whose gradients are among them
  Bytes of_experts{};    ///< of experts, beside these: reduced over the replicas that have the same ones
};

/// A replica that exchanges data in its passes: when.
struct TensorGroup {
  std::shared_ptr<const GroupPasses> passes; ///< shared by replicas that are alike

  /// The fraction of its backward pass for each bucket.
  std::vector<double> parts_of(const std::vector<GradientBucket>& buckets) const;
};

struct StageCost {
  std::vector<ReplicaCost> replicas; ///< one per device, in the order of Stage::devices; of those that are simulated
  std::vector<TensorGroup> groups;   ///< [replica]; none where no device exchanges data in its passes
  Teams teams;                       ///< of devices that do, among those that are simulated
  std::vector<DeviceId> devices;     ///< of all replicas, where not all are simulated; else empty
  std::vector<std::size_t> loads; ///< [of all replicas]: the same number for the same tokens and experts; empty: equal
  Bytes gradients;                ///< bytes per shard, reduced over the replicas once per iteration
  Bytes expert_gradients;         ///< the same of experts, over the replicas that have the same ones
  std::vector<GradientBucket>
      buckets;                  ///< the gradients in the order in which backward completes them; empty: all at its end
  std::vector<ShardUnit> units; ///< what is gathered, reduced or left to the host by itself; empty: nothing is
  std::vector<UnitKernels> kernels; ///< [unit]; empty: what is sent is not made smaller
  bool only_offloads = false;       ///< units have nothing to gather or to reduce together
  GatheredPart gathered{};          ///< of weights that are gathered after the step, all at once
  /// Where replicas broadcast what they have stepped: how much each, of all but experts and of these; else empty.
  std::vector<StepsAlike> broadcasts{}, expert_broadcasts{};
  UnitParts unit_parts;   ///< of the first device's passes
  Zero zero = Zero::none; ///< what replicas share, if there are any
  int sharing = 1;        ///< replicas that share it
  int tensor_parallel = 1;
  StageAxes axes{};
  /// The part that a device sends or gets of each tensor at the stage's borders: 1, its own tokens, or what its group
  /// gathers (Training::scatter_gather).
  double border_part = 1;
  int turns = 1; ///< as in the stage

  /// Whether replicas gather weights or reduce gradients by unit.
  bool shares_units() const { return !units.empty() && !only_offloads; }
  /// Devices of all replicas, also of those that are not simulated.
  std::size_t size() const { return devices.empty() ? replicas.size() : devices.size(); }
  DeviceId device(std::size_t at) const { return devices.empty() ? replicas[at].device : devices[at]; }
  int rank(std::size_t device) const { return static_cast<int>(device) % tensor_parallel; }
  /// Replicas that share each micro-batch, among all.
  std::size_t in_turn() const { return size() / static_cast<std::size_t>(tensor_parallel * turns); }
  /// The group of a device; null for a device that is a replica by itself.
  const TensorGroup* group_of(std::size_t device) const {
    return groups.empty() ? nullptr : &groups[device / static_cast<std::size_t>(tensor_parallel)];
  }
};

/// The collective that brings replicas what others have stepped.
constexpr CollectiveKind after_step(const Sharding& sharding) {
  return sharding.broadcasts() ? CollectiveKind::broadcast : CollectiveKind::all_gather;
}

/// The parts of what they get so that go by a collective each, one after another: all by one gather, or what each
/// replica has stepped by a broadcast.
std::vector<StepsAlike> collectives_after_step(const StageCost& cost, bool of_experts);

/// What replicas gather after the step, all at once: of experts that ranks share, or of all else.
Bytes gathered_after_step(const StageCost& cost, bool of_experts);

/// The places, among a stage's devices, of those of a rank that have the same experts, for each part of the experts.
std::vector<std::vector<std::size_t>> expert_groups(const StageCost& cost, std::size_t rank);

/// Whether gradients of the stage that are left to hosts go there unit by unit, after each micro-batch whose gradients
/// are reduced; else once an iteration.
bool copies_gradients_by_unit(const Offload& offload, const Sharding& sharding, const StageCost& cost);

/// The part of a replica's tensor that a rank of one stage sends to a rank of another. Where each rank has its own
/// part, the parts overlap in this; where it has the whole, it sends to those of its own number, modulo its degree.
double part_sent(const StageCost& from, int from_rank, const StageCost& to, int to_rank);

/// Tensors made in one stage and needed in a later one, each counted once; per micro-batch.
struct StageEdge {
  int from = 0, to = 0;
  Bytes bytes;
};

struct PlanCost {
  std::vector<StageCost> stages;
  std::vector<StageEdge> edges; ///< sorted by from, to
  std::vector<Bytes> cut;       ///< [n]: bytes that cross from stages 0 … n to later ones; one less than stages
  std::shared_ptr<const Fold> fold = nullptr; ///< what the replicas stand for; null: each for itself
};

/// Sets what the stage recomputes according to the training.
void recompute_as_trained(const Problem& problem, Stage& stage);

/// Costs of a valid plan (check_plan). Times are infinite if a device lacks a kernel.
PlanCost cost_plan(const Problem& problem, const Plan& plan);

/// The same of the replicas alone that are simulated.
PlanCost cost_plan(const Problem& problem, const Plan& plan, Fold fold);

/// The same without times, which are 0: all that a check of memory needs.
PlanCost cost_memory(const Problem& problem, const Plan& plan);

} // namespace stagecraft
