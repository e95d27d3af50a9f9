// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/estimate/estimate.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "sim/plan/estimate/steady_estimate.hpp"
#include "sim/plan/stage_cost/collective_seconds.hpp"
#include "sim/plan/stage_cost/communicators.hpp"
#include "sim/plan/stage_cost/unit_waits.hpp"

namespace stagecraft {
namespace {

// Per device, the sum over its stages; replicas that take micro-batches in turn have a part of them.
std::map<DeviceId, Seconds> busy_by_device(const PlanCost& cost) {
  std::map<DeviceId, Seconds> busy;
  for (const StageCost& stage : cost.stages) {
    for (const ReplicaCost& replica : stage.replicas) {
      busy[replica.device] += replica.busy() / stage.turns;
    }
  }
  return busy;
}

// Devices of a stage with the same rank, at the same place of nodes that are alike: by their nodes.
struct LikeDevices {
  int rank = 0, place = 0;
  std::map<int, DeviceId> in_node;
};

std::vector<LikeDevices> like_devices(const Problem& problem, const StageCost& stage) {
  std::map<std::pair<int, int>, LikeDevices> alike;
  for (std::size_t i = 0; i < stage.size(); ++i) {
    const DeviceId device = stage.device(i);
    const std::pair<int, int> key{stage.rank(i), problem.router.place_of(device)};
    LikeDevices& devices = alike.try_emplace(key, LikeDevices{key.first, key.second, {}}).first->second;
    devices.in_node.emplace(problem.platform.devices[device].node, device);
  }
  std::vector<LikeDevices> list;
  for (auto& [key, devices] : alike) {
    list.push_back(std::move(devices));
  }
  return list;
}

// Two different devices, of one group each, in one node and in two, where there are such: all others have routes like
// theirs.
std::vector<std::pair<DeviceId, DeviceId>> unlike_pairs(const LikeDevices& one, const LikeDevices& other) {
  std::vector<std::pair<DeviceId, DeviceId>> pairs;
  const auto& [node, device] = *one.in_node.begin();
  const auto elsewhere = std::find_if(other.in_node.begin(), other.in_node.end(),
                                      [at = node](const auto& entry) { return entry.first != at; });
  if (elsewhere != other.in_node.end()) {
    pairs.emplace_back(device, elsewhere->second);
  } else if (one.in_node.size() > 1) {
    pairs.emplace_back(one.in_node.rbegin()->second, other.in_node.begin()->second);
  }
  const auto together = std::find_if(one.in_node.begin(), one.in_node.end(), [&](const auto& entry) {
    const auto found = other.in_node.find(entry.first);
    return found != other.in_node.end() && found->second != entry.second;
  });
  if (together != one.in_node.end()) {
    pairs.emplace_back(together->second, other.in_node.at(together->first));
  }
  return pairs;
}

} // namespace

Seconds slowest_transfer(const Problem& problem, const StageCost& from, const StageCost& to, Bytes bytes) {
  const std::vector<LikeDevices> senders = like_devices(problem, from), receivers = like_devices(problem, to);
  Seconds worst;
  for (const LikeDevices& sender : senders) {
    for (const LikeDevices& receiver : receivers) {
      const double part =
          std::max(part_sent(from, sender.rank, to, receiver.rank), part_sent(to, receiver.rank, from, sender.rank));
      if (part <= 0) {
        continue;
      }
      for (const auto& [one, other] : unlike_pairs(sender, receiver)) {
        worst = std::max(worst, problem.path(one, other).time(bytes * part));
      }
    }
  }
  return worst;
}

namespace {

// The largest part of a micro-batch that a replica of either stage has, and so sends or receives.
double largest_part(const StageCost& one, const StageCost& other) {
  double largest = 0;
  for (const StageCost* stage : {&one, &other}) {
    for (const ReplicaCost& replica : stage->replicas) {
      largest = std::max(largest, replica.share);
    }
  }
  return largest;
}

Seconds transfer_after(const Problem& problem, const PlanCost& cost, std::size_t stage) {
  const StageCost &from = cost.stages[stage], &to = cost.stages[stage + 1];
  return slowest_transfer(problem, from, to, cost.cut[stage] * largest_part(from, to));
}

// What devices that hold the same reduce among themselves; or, where each `sharing` of them share states, reduce to
// parts, add up over the groups, and gather; or, where they broadcast what they step, reduce among themselves first.
class Reducers {
public:
  Reducers(const Problem& problem, const std::vector<DeviceId>& ranks, std::size_t sharing)
      : Reducers(problem, ranks, sharing, problem.training.sharding.broadcasts() ? 1 : sharing) {}

  Seconds reduce(Bytes gradients) const { return scatter_.of(gradients) + add_up_.of(gradients / parts_); }
  /// `one_by_one`: as collectives_after_step() says.
  Seconds gather(Bytes weights, const std::vector<StepsAlike>& one_by_one) const {
    return std::accumulate(one_by_one.begin(), one_by_one.end(), Seconds{0}, [&](Seconds sum, const StepsAlike& alike) {
      return sum + gather_.of(weights * alike.part) * alike.replicas;
    });
  }

private:
  Reducers(const Problem& problem, const std::vector<DeviceId>& ranks, std::size_t sharing, std::size_t parts)
      : parts_(static_cast<double>(parts)), scatter_(problem, CollectiveKind::reduce_scatter, first(ranks, parts)),
        gather_(problem, after_step(problem.training.sharding), first(ranks, sharing)),
        add_up_(problem, CollectiveKind::all_reduce, every(ranks, parts)) {}

  static std::vector<DeviceId> first(const std::vector<DeviceId>& ranks, std::size_t count) {
    return {ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(std::min(count, ranks.size()))};
  }
  static std::vector<DeviceId> every(const std::vector<DeviceId>& ranks, std::size_t step) {
    std::vector<DeviceId> places;
    for (std::size_t at = 0; at < ranks.size(); at += step) {
      places.push_back(ranks[at]);
    }
    return places;
  }

  double parts_;
  CollectiveSeconds scatter_, gather_, add_up_;
};

// The devices of a rank of a stage: those of all replicas, and those that have the same experts.
class RankReducers {
public:
  RankReducers(const Problem& problem, const Stage& stage, const StageCost& cost, std::size_t rank)
      : sharding_(problem.training.sharding), cost_(cost) {
    const auto degree = static_cast<std::size_t>(stage.tensor_parallel);
    const auto apart = static_cast<std::size_t>(cost.axes.expert_replicas());
    const std::size_t sharing = cost.zero == Zero::none ? 1 : static_cast<std::size_t>(cost.sharing);
    const auto every = [&](std::size_t first, std::size_t step) {
      std::vector<DeviceId> ranks;
      for (std::size_t i = first; i < stage.devices.size(); i += step) {
        ranks.push_back(stage.devices[i]);
      }
      return ranks;
    };
    all_.emplace_back(problem, every(rank, degree), sharing);
    for (std::size_t replica = 0; replica < apart && cost.expert_gradients.value > 0; ++replica) {
      experts_.emplace_back(problem, every(replica * degree + rank, apart * degree),
                            std::max<std::size_t>(1, sharing / apart));
    }
  }

  /// Experts after all else.
  Seconds reduce(Bytes gradients, Bytes of_experts) const {
    Seconds slowest;
    for (const Reducers& experts : experts_) {
      slowest = std::max(slowest, experts.reduce(of_experts));
    }
    return all_.front().reduce(gradients) + slowest;
  }

  /// Behind the step.
  Seconds gather() const {
    Seconds slowest;
    if (cost_.zero == Zero::none || sharding_.gathers_units()) {
      return slowest;
    }
    for (const Reducers& experts : experts_) {
      slowest =
          std::max(slowest, experts.gather(gathered_after_step(cost_, true), collectives_after_step(cost_, true)));
    }
    return all_.front().gather(gathered_after_step(cost_, false), collectives_after_step(cost_, false)) + slowest;
  }

private:
  const Sharding& sharding_;
  const StageCost& cost_;
  std::vector<Reducers> all_, experts_;
};

// Bucket by bucket, one after the other, each from where the last backward has completed it: how long behind that
// backward the last one ends.
Seconds buckets_behind(const RankReducers& reducers, const StageCost& cost) {
  const auto slowest =
      std::max_element(cost.replicas.begin(), cost.replicas.end(),
                       [](const ReplicaCost& one, const ReplicaCost& other) { return one.busy() < other.busy(); });
  const TensorGroup* const group = cost.group_of(static_cast<std::size_t>(slowest - cost.replicas.begin()));
  const std::vector<double> of_group = group != nullptr ? group->parts_of(cost.buckets) : std::vector<double>{};
  Seconds made, reduced;
  for (std::size_t k = 0; k < cost.buckets.size(); ++k) {
    const GradientBucket& bucket = cost.buckets[k];
    made += slowest->backward() * (group != nullptr ? of_group[k] : bucket.part);
    reduced = std::max(reduced, made) + reducers.reduce(bucket.bytes, bucket.of_experts);
  }
  return reduced - made;
}

enum class Buckets { apart, together };

Seconds seconds_to_reduce(const Problem& problem, const Stage& stage, const StageCost& cost, Buckets buckets) {
  Seconds slowest;
  for (int rank = 0; rank < stage.tensor_parallel && stage.replicas() > 1; ++rank) {
    const RankReducers reducers(problem, stage, cost, static_cast<std::size_t>(rank));
    Seconds reduction;
    if (buckets == Buckets::apart && cost.buckets.size() > 1) {
      reduction = buckets_behind(reducers, cost);
    } else if (!cost.shares_units()) {
      reduction = reducers.reduce(cost.gradients, cost.expert_gradients);
    }
    slowest = std::max(slowest, reduction + reducers.gather());
  }
  return slowest + (cost.units.empty() ? Seconds{0} : wait_for_units(problem, stage, cost));
}

} // namespace

Seconds seconds_to_reduce(const Problem& problem, const Stage& stage, const StageCost& cost) {
  return seconds_to_reduce(problem, stage, cost, Buckets::together);
}

Seconds bottleneck(const Problem& problem, const Plan& plan, const PlanCost& cost) {
  Seconds worst;
  for (const auto& [device, busy] : busy_by_device(cost)) {
    worst = std::max(worst, busy);
  }
  for (std::size_t n = 0; n + 1 < plan.stages.size(); ++n) {
    worst = std::max(worst, 2 * transfer_after(problem, cost, n));
  }
  return worst;
}

Seconds estimate_iteration(const Problem& problem, const Plan& plan, const PlanCost& cost) {
  Seconds largest;
  for (const auto& [device, busy] : busy_by_device(cost)) {
    largest = std::max(largest, busy);
  }
  Seconds total;
  Seconds reduce;
  Seconds step;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    // Before the last gradients come a stage has time to run forward again, but for the last one.
    const bool again_meanwhile = problem.training.recompute.rule.early && s + 1 < plan.stages.size();
    Seconds slowest;
    for (const ReplicaCost& replica : cost.stages[s].replicas) {
      slowest = std::max(slowest, replica.busy() - (again_meanwhile ? replica.recompute : Seconds{0}));
      const Seconds of_host = replica.host != nullptr ? replica.host->seconds() : Seconds{0};
      step = std::max(step, replica.norm + std::max(replica.optimizer, of_host));
    }
    total += slowest;
    if (s + 1 < plan.stages.size()) {
      total += 2 * transfer_after(problem, cost, s);
    }
    reduce = std::max(reduce, seconds_to_reduce(problem, plan.stages[s], cost.stages[s], Buckets::apart));
  }
  const int fills = problem.training.pipeline_fills;
  return (problem.micro_batches - fills) * largest + fills * total + reduce + step;
}

std::optional<MemoryShortage> memory_shortage(const Problem& problem, const Plan& plan, const PlanCost& cost,
                                              const InFlight& in_flight, int versions) {
  struct Need {
    Bytes sum, largest, in_turn;
    int stage = 0;
  };
  std::map<DeviceId, Need> needs;
  const int stages = static_cast<int>(plan.stages.size());
  for (int s = 0; s < stages; ++s) {
    for (const ReplicaCost& replica : cost.stages[s].replicas) {
      const Bytes bytes = replica.memory.total(in_flight(s, stages), versions);
      Need& need = needs[replica.device];
      need.sum += bytes - replica.memory.in_turn();
      need.in_turn = std::max(need.in_turn, replica.memory.in_turn());
      if (bytes > need.largest) {
        need.largest = bytes;
        need.stage = s;
      }
    }
  }
  const MemoryReserve& reserve = problem.training.memory;
  std::map<DeviceId, int> communicators;
  if (reserve.communicator.value > 0) {
    communicators = communicators_of(cost, problem.training.clip_gradients, problem.training.sharding.on());
  }
  std::optional<MemoryShortage> worst;
  for (const auto& [device, of_tensors] : needs) {
    const Bytes need = reserve.with(of_tensors.sum + of_tensors.in_turn, reserve.communicator * communicators[device]);
    const Bytes have = reserve.with(problem.platform.type_of(device).memory, Bytes{0});
    if (need > have && (!worst || need - have > worst->need - worst->have)) {
      worst = MemoryShortage{device, of_tensors.stage, need, have};
    }
  }
  return worst ? worst : host_shortage(problem, cost, in_flight);
}

std::optional<MemoryShortage> host_shortage(const Problem& problem, const PlanCost& cost, const InFlight& in_flight) {
  if (!problem.training.offload.on()) {
    return std::nullopt;
  }
  std::map<int, Bytes> needs; // by node
  const int stages = static_cast<int>(cost.stages.size());
  for (int s = 0; s < stages; ++s) {
    const StageCost& stage = cost.stages[s];
    const auto degree = static_cast<std::size_t>(stage.tensor_parallel);
    for (std::size_t i = 0; i < stage.size(); ++i) {
      const std::size_t simulated = cost.fold ? cost.fold->stages[s].simulated(i, degree) : i;
      const StageMemory& memory = stage.replicas[simulated].memory;
      needs[problem.platform.devices[stage.device(i)].node] +=
          memory.host + memory.host_per_micro_batch * in_flight(s, stages);
    }
  }
  std::optional<MemoryShortage> worst;
  for (const auto& [node, need] : needs) {
    const Bytes have = problem.platform.nodes[node].host.memory;
    if (need > have && (!worst || need - have > worst->need - worst->have)) {
      worst = MemoryShortage{.need = need, .have = have, .node = node};
    }
  }
  return worst;
}

std::string to_text(const MemoryShortage& shortage, const Platform& platform) {
  if (shortage.node >= 0) {
    return "the host of '" + platform.nodes[shortage.node].name + "' needs " + to_text(shortage.need) +
           " for what its devices leave to it, " + to_text(shortage.need - shortage.have) + " more than its " +
           to_text(shortage.have);
  }
  return "stage " + std::to_string(shortage.stage) + " on '" + platform.devices[shortage.device].name + "' needs " +
         to_text(shortage.need) + ", " + to_text(shortage.need - shortage.have) + " more than its " +
         to_text(shortage.have);
}

} // namespace stagecraft
