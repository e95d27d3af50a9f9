// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/unit_waits.hpp"

#include <algorithm>

#include "sim/collective/algorithm.hpp"

namespace stagecraft {
namespace {

// What a replica runs for one micro-batch: a unit's recompute stands before its backward where weights are given up.
void add_micro_batch(const Sharding& sharding, const std::vector<UnitSeconds>& units, std::vector<UnitStep>& steps) {
  const auto count = static_cast<int>(units.size());
  const bool again =
      std::any_of(units.begin(), units.end(), [](const UnitSeconds& unit) { return unit.recompute.value > 0; });
  for (int unit = 0; unit < count; ++unit) {
    steps.push_back({UnitPass::forward, unit});
  }
  for (int unit = 0; again && !sharding.parts_weights() && unit < count; ++unit) {
    steps.push_back({UnitPass::recompute, unit});
  }
  for (int unit = count; unit-- > 0;) {
    if (again && sharding.parts_weights()) {
      steps.push_back({UnitPass::recompute, unit});
    }
    steps.push_back({UnitPass::backward, unit});
  }
}

Seconds seconds_of(const UnitStep& step, const UnitSeconds& unit) {
  switch (step.pass) {
  case UnitPass::forward:
    return unit.forward;
  case UnitPass::recompute:
    return unit.recompute;
  default:
    return unit.backward;
  }
}

Seconds seconds_of_steps(const Sharding& sharding, const std::vector<UnitSeconds>& units,
                         const std::vector<UnitStep>& steps) {
  const bool gathers_units = sharding.gathers_units();
  const std::vector<char> gathers = steps_that_gather(sharding.reshard, steps);
  const std::vector<char> reduces = steps_that_reduce(sharding.reduce, steps, UnitPass::backward);
  const auto ahead = static_cast<std::size_t>(sharding.prefetch) + 1;
  std::vector<Seconds> ends(steps.size()), reduced(steps.size());
  Seconds now, gathered, last;
  for (std::size_t n = 0; n < steps.size(); ++n) {
    const UnitSeconds& unit = units[static_cast<std::size_t>(steps[n].unit)];
    if (gathers_units && gathers[n] != 0) {
      gathered = std::max(gathered, n >= ahead ? ends[n - ahead] : Seconds{0}) + unit.gather;
      now = std::max(now, gathered);
    }
    if (n >= kUnitsToReduce) {
      now = std::max(now, reduced[n - kUnitsToReduce]);
    }
    ends[n] = now = now + seconds_of(steps[n], unit);
    if (reduces[n] != 0) {
      reduced[n] = last = std::max(last, now) + unit.reduce;
    }
  }
  return std::max(now, last);
}

// The devices of a group that shares, and those that hold the same part in all groups: the first of each.
std::vector<DeviceId> devices_at(const Stage& stage, std::size_t first, std::size_t step, std::size_t count) {
  std::vector<DeviceId> devices;
  for (std::size_t i = 0; i < count; ++i) {
    devices.push_back(stage.devices[(first + i * step) * static_cast<std::size_t>(stage.tensor_parallel)]);
  }
  return devices;
}

} // namespace

Seconds seconds_of_units(const Sharding& sharding, const std::vector<UnitSeconds>& units, int micro_batches) {
  constexpr int kSteady = 3; // from then on each micro-batch adds as much
  std::vector<UnitStep> steps;
  Seconds before, seconds;
  for (int m = 0; m < std::min(micro_batches, kSteady); ++m) {
    add_micro_batch(sharding, units, steps);
    before = std::exchange(seconds, seconds_of_steps(sharding, units, steps));
  }
  return seconds + std::max(0, micro_batches - kSteady) * (seconds - before);
}

Seconds wait_for_units(const Problem& problem, const Stage& stage, const StageCost& cost) {
  const std::string_view wanted = problem.training.all_reduce->name;
  const auto sharing = static_cast<std::size_t>(cost.sharing);
  const std::size_t groups = stage.replicas() / sharing;
  const auto ways = [&](CollectiveKind kind, const std::vector<DeviceId>& devices) {
    return ways_of(kind, devices, problem.router, wanted);
  };
  const auto among = devices_at(stage, 0, 1, sharing);
  const std::vector<Way> gather = ways(CollectiveKind::all_gather, among);
  const std::vector<Way> reduce = ways(CollectiveKind::reduce_scatter, among);
  const auto apart = static_cast<std::size_t>(cost.axes.expert_replicas()); // replicas with other experts
  const auto alike = devices_at(stage, 0, apart, std::max<std::size_t>(1, sharing / apart));
  const std::vector<Way> gather_experts = ways(CollectiveKind::all_gather, alike);
  const std::vector<Way> reduce_experts = ways(CollectiveKind::reduce_scatter, alike);
  const std::vector<Way> over = ways(CollectiveKind::all_reduce, devices_at(stage, 0, sharing, groups));
  const auto seconds_by = [](const std::vector<Way>& each, Bytes bytes) {
    return stagecraft::seconds_of(fastest_of(each, bytes).flows, bytes);
  };
  const auto slowest =
      std::max_element(cost.replicas.begin(), cost.replicas.end(),
                       [](const ReplicaCost& one, const ReplicaCost& other) { return one.busy() < other.busy(); });
  std::vector<UnitSeconds> units;
  for (std::size_t u = 0; u < cost.units.size(); ++u) {
    const ShardUnit& unit = cost.units[u];
    units.push_back({.forward = slowest->forward * cost.unit_parts.forward[u],
                     .recompute = slowest->recompute * cost.unit_parts.recompute[u],
                     .backward = slowest->backward() * cost.unit_parts.backward[u],
                     .gather = seconds_by(gather, unit.weights),
                     .reduce = seconds_by(reduce, unit.gradients)});
    if (apart > 1 && unit.expert_weights.value > 0) { // after those of all
      units.back().gather += seconds_by(gather_experts, unit.expert_weights);
      units.back().reduce += seconds_by(reduce_experts, unit.expert_gradients);
    }
    if (groups > 1) {
      units.back().reduce += seconds_by(over, unit.gradients / static_cast<double>(sharing));
    }
  }
  return seconds_of_units(problem.training.sharding, units, problem.micro_batches) -
         problem.micro_batches * slowest->busy();
}

} // namespace stagecraft
