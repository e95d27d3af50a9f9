// Closed-form estimates for a plan: bottleneck, iteration time, memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "sim/plan/estimate/in_flight.hpp"
#include "sim/plan/stage_cost/stage_costs.hpp"

namespace stagecraft {

/// The largest time per micro-batch of any device or boundary. A device counts forward + backward (+ recompute) over
/// its stages. A boundary between neighbouring stages counts 2 (latency + bytes / bandwidth) over the slowest pair of
/// their devices: the activation and the gradient, one after the other.
Seconds bottleneck(const Problem& problem, const Plan& plan, const PlanCost& cost);

/// (M-1) max c + sum c + 2 sum x + max all-reduce + optimiser, as AMP and Metis estimate (notes: exact for GPipe and
/// 1F1B only when all stages are equal).
Seconds estimate_iteration(const Problem& problem, const Plan& plan, const PlanCost& cost);

/// A device, or the host of a node, with too little memory, and by how much.
struct MemoryShortage {
  DeviceId device = 0;
  int stage = 0; ///< the device's stage that needs most
  Bytes need, have;
  int node = -1; ///< whose host it is; -1: the device
};

/// The host that lacks most memory for what devices leave to it when stage s of S holds in_flight(s, S) micro-batches.
std::optional<MemoryShortage> host_shortage(const Problem& problem, const PlanCost& cost, const InFlight& in_flight);

/// The device that lacks most memory when stage s of S holds in_flight(s, S) micro-batches; where all fit, the host
/// that does; or nothing when all fit.
std::optional<MemoryShortage> memory_shortage(const Problem& problem, const Plan& plan, const PlanCost& cost,
                                              const InFlight& in_flight, int versions);

/// "stage 2 on 'v100-3' needs 91.00 GiB, 11.00 GiB more than its 80.00 GiB"; or "the host of 'node-0' needs …".
std::string to_text(const MemoryShortage& shortage, const Platform& platform);

} // namespace stagecraft
