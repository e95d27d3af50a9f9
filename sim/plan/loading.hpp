// How the first stage of a plan gets its data: workers and queue of each device's loader, and what a batch costs it.
// Wang et al. 2024: data is loaded while training runs, with as many workers as balance host and device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/plan/stage_costs.hpp"
#include "sim/workload/loader.hpp"

namespace stagecraft {

/// The loader of one replica of the first stage; amounts per batch, its share of a micro-batch.
struct ReplicaLoading {
  int node = 0;
  Leg disk; ///< no links: a disk without limit
  Bytes read;
  Seconds decode; ///< on one core
  Leg copy;       ///< from the host to the device
  Bytes copied;
};

/// Batch n is loaded by worker n mod `workers`, and not before batch n - `queue` is taken.
struct Loading {
  int workers = 1, queue = 1;
  HostWait host = HostWait::spin;
  std::vector<ReplicaLoading> replicas; ///< per replica of stage 0
};

/// Least k with load/k <= 0.95 step, at most `most`: device and host then end together, the host a little earlier.
int balanced_workers(Seconds load, Seconds step, int most);

/// How fast batches are taken: one every `step`, were data at hand, up to `burst` of them one right after the other.
struct Demand {
  Seconds step; ///< read only where the number of workers is to be chosen
  int burst = 1;
};

/// Loading for a plan. A queue that is to be chosen holds max(2, workers) + 1 batches, and one more for each further
/// batch of a burst. Infeasible when a host lacks cores or no route leads from it to its device.
std::variant<Loading, Infeasible> plan_loading(const Problem& problem, const Plan& plan, const PlanCost& cost,
                                               const Loader& loader, const Demand& demand);

} // namespace stagecraft
