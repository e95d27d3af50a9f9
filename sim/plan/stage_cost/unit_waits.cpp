// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/unit_waits.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "sim/plan/stage_cost/collective_seconds.hpp"

namespace stagecraft {
namespace {

// What a replica runs in so many micro-batches, of which `numbers` are those of its steps. `weaves`: a unit's recompute
// stands before its backward.
std::vector<UnitStep> steps_of(const std::vector<UnitSeconds>& units, int micro_batches, bool weaves,
                               std::vector<std::int32_t>& numbers) {
  const auto count = static_cast<int>(units.size());
  const bool again =
      std::any_of(units.begin(), units.end(), [](const UnitSeconds& unit) { return unit.recompute.value > 0; });
  std::vector<UnitStep> steps;
  for (int m = 0; m < micro_batches; ++m) {
    for (int unit = 0; unit < count; ++unit) {
      steps.push_back({UnitPass::forward, unit});
    }
    for (int unit = 0; again && !weaves && unit < count; ++unit) {
      steps.push_back({UnitPass::recompute, unit});
    }
    for (int unit = count; unit-- > 0;) {
      if (again && weaves) {
        steps.push_back({UnitPass::recompute, unit});
      }
      steps.push_back({UnitPass::backward, unit});
    }
    numbers.resize(steps.size(), m);
  }
  return steps;
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

// Which activations leave after each step and which must be back before it: trips, or -1. And those that must be away
// before it.
struct TripsByStep {
  std::vector<UnitTrip> trips;
  std::vector<int> leaves, arrives;
  std::vector<std::vector<int>> gone;
};

TripsByStep trips_by_step(const std::vector<UnitSeconds>& units, const std::vector<UnitStep>& steps,
                          const std::vector<std::int32_t>& numbers) {
  std::vector<std::size_t> away;
  for (const UnitSeconds& unit : units) {
    away.push_back(unit.leave.value > 0 ? unit.steps_away : 0);
  }
  TripsByStep by_step{trips_of(steps, numbers, away), std::vector<int>(steps.size(), -1),
                      std::vector<int>(steps.size(), -1), std::vector<std::vector<int>>(steps.size())};
  for (std::size_t n = 0; n < by_step.trips.size(); ++n) {
    const UnitTrip& trip = by_step.trips[n];
    by_step.leaves[trip.from] = by_step.arrives[trip.to] = static_cast<int>(n);
    by_step.gone[trip.gone_by].push_back(static_cast<int>(n));
  }
  return by_step;
}

// When the groups have added up a unit that was reduced at `last`, and before it those until `added`.
Seconds add_up(const UnitSeconds& unit, Seconds last, Seconds added) {
  if (unit.add_up.value > 0) {
    added = std::max(added, last - unit.reduce_experts) + unit.add_up;
  }
  return unit.add_up_experts.value > 0 ? std::max(added, last) + unit.add_up_experts : added;
}

Seconds seconds_of_steps(const Sharding& sharding, const std::vector<UnitSeconds>& units,
                         const std::vector<UnitStep>& steps, const std::vector<std::int32_t>& numbers) {
  const bool gathers_units = sharding.gathers_units();
  const std::vector<char> gathers = steps_that_gather(sharding.reshard, steps);
  const std::vector<char> reduces = steps_that_reduce(sharding.reduce, steps, UnitPass::backward);
  const TripsByStep trips = trips_by_step(units, steps, numbers);
  std::vector<Seconds> ends(steps.size()), reduced(steps.size()), gone(trips.trips.size());
  const auto end_before = [&](std::size_t n, std::size_t count) { return n >= count ? ends[n - count] : Seconds{0}; };
  Seconds now, gathered, last, added, leaving, arrived;
  for (std::size_t n = 0; n < steps.size(); ++n) {
    const UnitSeconds& unit = units[static_cast<std::size_t>(steps[n].unit)];
    if (gathers_units && gathers[n] != 0) {
      const bool backward = steps[n].pass != UnitPass::forward;
      const bool again = unit.gather_again.value > 0 && backward;
      Seconds ready = end_before(n, static_cast<std::size_t>(sharding.ahead(backward)) + 1);
      if (!again && unit.fetch.value > 0) {
        ready = arrived = std::max(arrived, ready) + unit.fetch;
      }
      gathered = std::max(gathered, ready) + (again ? unit.gather_again : unit.gather - unit.gather_late);
      if (!again && unit.gather_late.value > 0) {
        gathered = std::max(gathered, end_before(n, 1)) + unit.gather_late;
      }
      now = std::max(now, gathered) + unit.dequantize;
    }
    if (n >= kUnitsToReduce) {
      now = std::max(now, reduced[n - kUnitsToReduce]);
    }
    for (const int trip : trips.gone[n]) {
      now = std::max(now, gone[static_cast<std::size_t>(trip)]);
    }
    if (const int number = trips.arrives[n]; number >= 0) {
      const auto trip = static_cast<std::size_t>(number);
      arrived = std::max({arrived, ends[trips.trips[trip].back_after], gone[trip]}) + unit.arrive;
      now = std::max(now, arrived);
    }
    ends[n] = now = now + seconds_of(steps[n], unit);
    if (reduces[n] != 0) {
      reduced[n] = last = std::max(last, now) + unit.reduce;
      added = add_up(unit, last, added);
      if (unit.add_up_experts.value > 0 && unit.reduce_experts.value == 0) { // nothing else reduces them
        reduced[n] = added;
      }
      leaving = unit.leave_gradients.value > 0 ? std::max({leaving, last, added}) + unit.leave_gradients : leaving;
    }
    if (const int trip = trips.leaves[n]; trip >= 0) {
      gone[static_cast<std::size_t>(trip)] = leaving = std::max(leaving, now) + unit.leave;
    }
  }
  return std::max({now, last, added, leaving});
}

// The devices of a group that shares, and those that hold the same part in all groups: the first of each. A planner
// that sees groups as devices has fewer of them than share (Sharding::per_device): those that it has.
std::vector<DeviceId> devices_at(const Stage& stage, std::size_t first, std::size_t step, std::size_t count) {
  std::vector<DeviceId> devices;
  const auto degree = static_cast<std::size_t>(stage.tensor_parallel);
  for (std::size_t i = 0; i < count && (first + i * step) * degree < stage.devices.size(); ++i) {
    devices.push_back(stage.devices[(first + i * step) * degree]);
  }
  return devices;
}

} // namespace

Seconds seconds_of_units(const Sharding& sharding, const std::vector<UnitSeconds>& units, int micro_batches,
                         bool weaves) {
  constexpr int kSteady = 3; // from then on each micro-batch adds as much
  Seconds before, seconds;
  for (int m = 1; m <= std::min(micro_batches, kSteady); ++m) {
    std::vector<std::int32_t> numbers;
    const std::vector<UnitStep> steps = steps_of(units, m, weaves, numbers);
    before = std::exchange(seconds, seconds_of_steps(sharding, units, steps, numbers));
  }
  return seconds + std::max(0, micro_batches - kSteady) * (seconds - before);
}

namespace {

// The first node's devices among some, and the first of each node.
struct TwoHops {
  std::vector<DeviceId> inside, between;
};

TwoHops two_hops(const Problem& problem, const std::vector<DeviceId>& devices) {
  TwoHops hops;
  std::set<int> nodes;
  for (const DeviceId device : devices) {
    const int node = problem.platform.devices[device].node;
    if (nodes.insert(node).second) {
      hops.between.push_back(device);
    }
    if (node == problem.platform.devices[devices.front()].node) {
      hops.inside.push_back(device);
    }
  }
  return hops;
}

// What a unit's collectives take, and its copies.
class UnitCommunication {
public:
  UnitCommunication(const Problem& problem, const Stage& stage, const StageCost& cost)
      : sharding_(problem.training.sharding), offload_(problem.training.offload), cost_(cost),
        by_unit_(copies_gradients_by_unit(offload_, sharding_, cost)), sharing_(static_cast<std::size_t>(cost.sharing)),
        groups_(std::max<std::size_t>(1, stage.replicas() / sharing_)),
        apart_(static_cast<std::size_t>(cost.axes.expert_replicas())),
        hops_(two_hops(problem, devices_at(stage, 0, 1, sharding_.quantized_gradients ? sharing_ : 1))),
        gather_(problem, CollectiveKind::all_gather, devices_at(stage, 0, 1, sharing_)),
        gather_again_(problem, CollectiveKind::all_gather,
                      devices_at(stage, 0, 1, std::max<std::size_t>(1, static_cast<std::size_t>(sharding_.secondary)))),
        reduce_(problem, CollectiveKind::reduce_scatter, devices_at(stage, 0, 1, sharing_)),
        inside_(problem, CollectiveKind::all_to_all, hops_.inside),
        between_(problem, CollectiveKind::all_to_all, hops_.between),
        gather_experts_(problem, CollectiveKind::all_gather, alike(stage)),
        reduce_experts_(problem, CollectiveKind::reduce_scatter, alike(stage)),
        over_(problem, CollectiveKind::all_reduce, devices_at(stage, 0, sharing_, groups_)) {}

  /// Adds them to the unit's computing.
  void add_to(UnitSeconds& seconds, std::size_t at, const ReplicaCost& slowest) const {
    const ShardUnit& unit = cost_.units[at];
    const UnitKernels kernels = cost_.kernels.empty() ? UnitKernels{} : cost_.kernels[at];
    if (cost_.shares_units()) {
      seconds.gather = gather_.of(unit.weights * unit.gathered.dense) + kernels.before_gather;
      seconds.reduce = reduced(unit, kernels);
      seconds.add_up = over_groups(unit.gradients, sharing_);
      if (sharding_.secondary > 0) {
        seconds.gather_again = gather_again_.of(unit.weights * unit.gathered.dense) + kernels.before_second_gather;
      }
      seconds.dequantize = kernels.after_gather;
    }
    if (cost_.shares_units() && unit.expert_weights.value > 0) { // after those of all, be it among the same ranks
      seconds.gather_late = gather_experts_.of(unit.late_weights * unit.gathered.experts);
      seconds.gather +=
          gather_experts_.of((unit.expert_weights - unit.late_weights) * unit.gathered.experts) + seconds.gather_late;
      seconds.reduce_experts = of_same_experts() > 1 ? reduce_experts_.of(unit.expert_gradients) : Seconds{0};
      seconds.reduce += seconds.reduce_experts;
      seconds.add_up_experts = over_groups(unit.expert_gradients, of_same_experts());
    }
    if (slowest.host != nullptr) {
      add_copies(seconds, unit, slowest);
    }
  }

private:
  // Replicas of a group that shares which have the same experts.
  std::size_t of_same_experts() const { return std::max<std::size_t>(1, sharing_ / apart_); }

  std::vector<DeviceId> alike(const Stage& stage) const { return devices_at(stage, 0, apart_, of_same_experts()); }

  // Several groups hold the same: each of so many members' parts is added up over them.
  Seconds over_groups(Bytes gradients, std::size_t members) const {
    return groups_ > 1 ? over_.of(gradients / static_cast<double>(members)) : Seconds{0};
  }

  Seconds reduced(const ShardUnit& unit, const UnitKernels& kernels) const {
    const auto places = static_cast<double>(hops_.inside.size());
    const Bytes sent = unit.gradients * unit.reduced;
    return sharding_.quantized_gradients ? inside_.of(sent) + between_.of(sent / places) + kernels.before_reduce +
                                               kernels.between + kernels.after_reduce
                                         : reduce_.of(unit.gradients);
  }

  void add_copies(UnitSeconds& seconds, const ShardUnit& unit, const ReplicaCost& slowest) const {
    const auto copy = [](const Leg& leg, Bytes bytes) {
      return bytes.value > 0 ? leg.latency + bytes / leg.bandwidth : Seconds{0};
    };
    const auto parts = static_cast<double>(sharing_);
    const double expert_parts = std::max(1.0, parts / static_cast<double>(apart_));
    if (offload_.parameters) {
      seconds.fetch = copy(slowest.host->from_host, unit.weights / parts + unit.expert_weights / expert_parts);
    }
    if (by_unit_) {
      const Bytes own = unit.gradients / parts + unit.expert_gradients / expert_parts;
      seconds.leave_gradients = copy(slowest.host->to_host, own * offload_.optimizer);
    }
    seconds.steps_away = unit.steps_away();
    seconds.leave = copy(slowest.host->to_host, unit.stash * slowest.share);
    seconds.arrive = copy(slowest.host->from_host, unit.stash * slowest.share);
  }

  const Sharding& sharding_;
  const Offload& offload_;
  const StageCost& cost_;
  bool by_unit_;                         ///< gradients go to hosts so
  std::size_t sharing_, groups_, apart_; ///< apart: replicas with other experts
  TwoHops hops_;
  CollectiveSeconds gather_, gather_again_, reduce_, inside_, between_, gather_experts_, reduce_experts_, over_;
};

} // namespace

Seconds wait_for_units(const Problem& problem, const Stage& stage, const StageCost& cost) {
  const Training& training = problem.training;
  const UnitCommunication communication(problem, stage, cost);
  const auto slowest =
      std::max_element(cost.replicas.begin(), cost.replicas.end(),
                       [](const ReplicaCost& one, const ReplicaCost& other) { return one.busy() < other.busy(); });
  std::vector<UnitSeconds> units;
  for (std::size_t u = 0; u < cost.units.size(); ++u) {
    units.push_back({.forward = slowest->forward * cost.unit_parts.forward[u],
                     .recompute = slowest->recompute * cost.unit_parts.recompute[u],
                     .backward = slowest->backward() * cost.unit_parts.backward[u]});
    communication.add_to(units.back(), u, *slowest);
  }
  const bool weaves = training.sharding.parts_weights() || training.offload.activations > 0;
  return seconds_of_units(training.sharding, units, problem.micro_batches, weaves) -
         problem.micro_batches * slowest->busy();
}

} // namespace stagecraft
