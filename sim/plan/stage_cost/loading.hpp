// How the first stage of a plan gets its data: workers and queue of each device's loader, and what a batch costs it.
// Wang et al. 2024: data is loaded while training runs, with as many workers as balance host and device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/plan/stage_cost/stage_costs.hpp"
#include "sim/workload/training/loader.hpp"

namespace stagecraft {

/// The loader of one replica of the first stage. Amounts are per batch; a batch is the replica's share of a
/// micro-batch.
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

/// The least k with load/k <= 0.95 step, but at most `most`: the host then has each batch ready shortly before the
/// device needs it.
int balanced_workers(Seconds load, Seconds step, int most);

/// How fast the device would take batches if data were always ready: one every `step`, and up to `burst` of them one
/// right after the other.
struct Demand {
  Seconds step; ///< read only if the number of workers is to be chosen
  int burst = 1;
};

/// Loading for a plan. If the queue is to be chosen, it holds max(2, workers) + 1 batches, and one more for each
/// further batch of a burst. Infeasible if a host lacks cores or has no route to its device.
std::variant<Loading, Infeasible> plan_loading(const Problem& problem, const Plan& plan, const PlanCost& cost,
                                               const Loader& loader, const Demand& demand);

} // namespace stagecraft
