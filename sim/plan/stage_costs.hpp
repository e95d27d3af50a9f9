// What a plan costs, stage by stage: times, bytes that cross, memory. Estimates, checks and task graphs start here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/plan/problem.hpp"

namespace stagecraft {

/// One replica of a stage, for one micro-batch.
struct ReplicaCost {
  DeviceId device = 0;
  double share = 1;
  Seconds forward, backward_input, backward_weight;
  Seconds recompute; ///< forward again; 0 without recompute
  Seconds optimizer; ///< per iteration
  StageMemory memory;

  Seconds busy() const { return forward + backward_input + backward_weight + recompute; }
};

struct StageCost {
  std::vector<ReplicaCost> replicas;
  Bytes gradients; ///< reduced over the replicas once per iteration
};

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

/// Costs of a valid plan (check_plan). Times are infinite where a device lacks a kernel.
PlanCost cost_plan(const Problem& problem, const Plan& plan);

} // namespace stagecraft
