// The reference: the least bottleneck over all states and all orders of devices.
// SPDX-License-Identifier: Apache-2.0

#include "sim/base/improves.hpp"
#include "sim/plan/estimate/check_plan.hpp"
#include "sim/strategy/dynamic_programming/device_orders.hpp"
#include "sim/strategy/first_plans.hpp"

namespace stagecraft {
namespace {

void add_note(Plan& plan, const std::string& note) { plan.note += (plan.note.empty() ? "" : "; ") + note; }

// The least bottleneck of a single stage, and of a boundary, with stages that go round the devices as the schedule
// places them; no device is left out.
PlanResult round_the_devices(const PlanRequest& request, CostedStates& costed) {
  if (const std::string reason = too_many_devices(request); !reason.empty()) {
    return Infeasible{reason};
  }
  return best_in_order(request, costed, chunked_devices(request), true);
}

// With several stages per device the bottleneck is the sum over a device's stages, which the dynamic program does not
// see. So the best is taken of what it finds over three orders of devices and of four plain splits.
PlanResult split_chunks(const PlanRequest& request, const Plan& unchunked) {
  const Problem& problem = request.problem;
  PlanResult best = Infeasible{"no plan with several stages per device fits in memory"};
  double least = kInfinity;
  const auto consider = [&](PlanResult found) {
    Plan* plan = std::get_if<Plan>(&found);
    if (plan == nullptr ||
        plan_shortage(problem, *plan, request.chunks, request.in_flight, request.versions, request.stage_placement)) {
      return;
    }
    const double value = bottleneck(problem, *plan, cost_plan(problem, *plan)).value;
    if (improves(value, least)) {
      least = value;
      plan->objective = Objective{"bottleneck", Seconds{value}};
      plan->memory_bound = true; // another schedule may let another candidate fit
      best = std::move(found);
    }
  };
  const auto costed = costed_states(request);
  PlanRequest ordered = request;
  for (const auto& devices : {devices_of(unchunked), request.devices, fastest_first(problem, request.devices)}) {
    ordered.devices = devices;
    consider(round_the_devices(ordered, *costed));
  }
  for (const auto split : {split_uniform, split_parameters, split_block_partition, split_capability_refined}) {
    consider(split(request));
  }
  if (Plan* plan = std::get_if<Plan>(&best)) {
    add_note(*plan, "the best of seven candidates with several stages per device");
  }
  return best;
}

} // namespace

PlanResult split_optimal(const PlanRequest& request) {
  if (request.chunks == 1) {
    return best_over_orders(request);
  }
  PlanRequest unchunked = request;
  unchunked.chunks = 1;
  unchunked.in_flight = [](int, int) { return 0.0; }; // memory is checked when the chunks are known
  const PlanResult found = best_over_orders(unchunked);
  const Plan* plan = std::get_if<Plan>(&found);
  return plan != nullptr ? split_chunks(request, *plan) : found;
}

} // namespace stagecraft
