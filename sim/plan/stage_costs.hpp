// What a plan costs, stage by stage: times, bytes that cross, memory. Estimates, checks and task graphs start here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/plan/problem.hpp"

namespace stagecraft {

/// One device of a stage, for one micro-batch: a replica, or one shard of a replica.
struct ReplicaCost {
  DeviceId device = 0;
  double share = 1;
  Seconds forward, backward_input, backward_weight; ///< the tensor-parallel group's collectives among them
  Seconds overlap;    ///< by which both gradients are faster at once than one after the other, on several streams
  Seconds recompute;  ///< forward of what runs again; 0 without recompute
  Seconds optimizer;  ///< per step
  Seconds prediction; ///< of weights some steps ahead, for schedules that predict them (XPipe): reads and writes them
  StageMemory memory;

  Seconds backward() const { return backward_input + backward_weight - overlap; } ///< both at once
  Seconds busy() const { return forward + backward() + recompute; }
};

/// Gradients that are reduced together.
struct GradientBucket {
  double part = 1; ///< of the backward pass, that makes them
  Bytes bytes;     ///< of one shard
};

struct StageCost {
  std::vector<ReplicaCost> replicas;   ///< one per device, in the order of Stage::devices
  Bytes gradients;                     ///< of one shard, reduced over the replicas once per iteration
  std::vector<GradientBucket> buckets; ///< of which, as backward makes them; empty: all at its end
  int tensor_parallel = 1;
  bool in_turn = false; ///< as of the stage

  int rank(std::size_t device) const { return static_cast<int>(device) % tensor_parallel; }
};

/// Whether the device of this rank receives a tensor of another stage from that rank: each takes it whole from the rank
/// of its own number, modulo the sender's degree.
constexpr bool sends_to(int from_rank, int from_degree, int to_rank) { return to_rank % from_degree == from_rank; }

/// Tensors made in one stage and needed in a later one, each counted once; per micro-batch.
struct StageEdge {
  int from = 0, to = 0;
  Bytes bytes;
};

struct PlanCost {
  std::vector<StageCost> stages;
  std::vector<StageEdge> edges; ///< sorted by from, to
  std::vector<Bytes> cut;       ///< [n]: crossing from stages 0 … n to later ones; one less than stages
};

/// What a stage with these operators recomputes as the training says; none of it where that names none of them.
void recompute_as_trained(const Problem& problem, Stage& stage);

/// Costs of a valid plan (check_plan). Times are infinite where a device lacks a kernel.
PlanCost cost_plan(const Problem& problem, const Plan& plan);

} // namespace stagecraft
