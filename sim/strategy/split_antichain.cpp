// Ju et al. 2024: profile -> graph -> augmented antichains -> antichain DAG -> its states in topological order ->
// dynamic programming that divides the sequence into stages and matches them with the devices -> stages.
//
// The abstract leaves open, and we read: (1) a state's cut is what PipeDream counts, the outputs of its augmented
// antichain; (2) devices are matched in the order of the platform, any of them left out, since the recurrence runs over
// devices as it runs over states; (3) stages must fit in memory. `optimal` counts what crosses and tries all orders.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/estimate/problem_memo.hpp"
#include "sim/strategy/dynamic_programming/device_orders.hpp"

namespace stagecraft {
namespace {

// The states in topological order: a type of its own, by which a memo tells them from those of costed_states().
struct Sequence : CostedStates {};

} // namespace

PlanResult split_antichain(const PlanRequest& request) {
  if (const std::string reason = too_many_devices(request); !reason.empty()) {
    return Infeasible{reason};
  }
  const auto sequence = kept_for<Sequence>(request, [&] {
    Sequence made{{antichain_sequence(request.problem.model, request.state_cap), {}, {}}};
    made.costs = cost_states(request.problem, made.states);
    made.costs.cut_bytes = augmented_cut_bytes(request.problem, made.states);
    return made;
  });
  PlanResult result = request.chunks == 1 ? best_in_order(request, *sequence, request.devices, false)
                                          : best_in_order(request, *sequence, chunked_devices(request), true);
  if (Plan* plan = std::get_if<Plan>(&result)) {
    plan->objective->name = "bottleneck, cuts by augmented antichains";
  }
  return result;
}

} // namespace stagecraft
