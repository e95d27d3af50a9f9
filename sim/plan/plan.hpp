// A plan: which operators form a stage, and which devices run it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/platform/platform.hpp"
#include "sim/workload/model_graph.hpp"
#include "sim/workload/training.hpp"

namespace stagecraft {

/// A convex set of operators on a group of devices. Several devices are replicas: each runs a share of every
/// micro-batch and they reduce their gradients together.
struct Stage {
  std::vector<OperatorId> operators; ///< ascending
  std::vector<DeviceId> devices;
  std::vector<double> shares; ///< of each device, adding up to 1; empty: equal
  int tensor_parallel = 1;    ///< no strategy sets more yet
  Recompute recompute = Recompute::none;

  double share(std::size_t replica) const {
    return shares.empty() ? 1.0 / static_cast<double>(devices.size()) : shares[replica];
  }
  bool operator==(const Stage&) const = default;
};

/// What a strategy itself minimised, where it minimises a time.
struct Objective {
  std::string name;
  Seconds value;
  bool operator==(const Objective&) const = default;
};

/// Stages in topological order: data flows from earlier to later ones only.
struct Plan {
  std::string strategy;
  std::vector<Stage> stages;
  std::optional<Objective> objective;
  std::string note;          ///< what a reader must know: a search cut short, branches contracted
  bool memory_bound = false; ///< the split would differ with more memory; if not, it serves whatever schedule it fits
  bool operator==(const Plan&) const = default;
};

using PlanResult = std::variant<Plan, Infeasible>;

/// Devices that the plan uses, each once, in order of their first stage.
std::vector<DeviceId> devices_of(const Plan& plan);

/// Whether stage s runs on device s mod P and nowhere else, `chunks` stages on each of P devices: the shape that named
/// pipeline schedules ask for. A single stage, replicated or not, has it too when chunks is 1.
bool is_pipeline(const Plan& plan, int chunks);

} // namespace stagecraft
