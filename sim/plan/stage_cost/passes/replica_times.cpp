// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/passes/replica_times.hpp"

#include <algorithm>
#include <cmath>

#include "sim/plan/stage_cost/groups/expert_loads.hpp"
#include "sim/plan/stage_cost/groups/token_loads.hpp"
#include "sim/plan/stage_cost/passes/stream_times.hpp"

namespace stagecraft {
namespace {

// Seconds saved by computing both gradients at once; exactly 0 if they run one after the other.
double backward_overlap(const StreamTimes& times) {
  const double apart = times.backward_input + times.backward_weight;
  return times.backward < apart ? apart - times.backward : 0;
}

// Times of a share of the micro-batch on the streams of one device.
ReplicaSeconds stage_times(const Problem& problem, const Stage& stage, const TensorSplit& split, int type,
                           double share) {
  const int streams = stage.streams > 0 ? stage.streams : problem.training.streams;
  const StreamTimes times = stream_times(problem, stage.operators, type, share, streams, StreamFigures::with_rest);
  ReplicaSeconds sums{times.forward, times.backward_input, times.backward_weight, backward_overlap(times)};
  sums.rest = times.rest;
  sums.ahead = times.ahead;
  for (std::size_t at = 0; at < stage.operators.size(); ++at) {
    if (split.operators[at].deferred) {
      const auto time = problem.cost.time(stage.operators[at], problem.platform.types[static_cast<std::size_t>(type)],
                                          problem.samples * share, problem.training.precision);
      sums.deferred += time ? time->backward_weight.value : 0;
    }
  }
  sums.overlap += sums.deferred;
  if (stage.recompute == Recompute::full) {
    sums.again = times.forward;
  } else if (stage.recompute == Recompute::selective) {
    sums.again = stream_times(problem, stage.recomputed, type, share, streams).forward;
  }
  return sums;
}

ReplicaSeconds group_times(const std::shared_ptr<const GroupPasses>& passes) {
  const double apart = (passes->backward_input.seconds + passes->backward_weight).value;
  return {.forward = passes->forward.seconds.value,
          .input = passes->backward_input.seconds.value,
          .weight = passes->backward_weight.value,
          .overlap = std::max(0.0, apart - passes->backward.seconds.value),
          .again = passes->recompute.seconds.value,
          .deferred = passes->deferred.value,
          .passes = passes,
          .rest = passes->rest,
          .ahead = passes->ahead};
}

} // namespace

ReplicaLoads::ReplicaLoads(const Problem& problem, const Stage& stage, const TensorSplit& split)
    : stage_(stage), experts_(static_cast<std::size_t>(stage.axes().expert_replicas())) {
  const auto loops = static_cast<std::size_t>(stage.context.loops());
  std::vector<std::vector<double>> of_tokens(loops, std::vector<double>(stage.operators.size(), 1.0));
  std::vector<std::vector<double>> of_experts(experts_, std::vector<double>(stage.operators.size(), 1.0));
  for (std::size_t at = 0; at < stage.operators.size() && !stage.axes().alone(); ++at) {
    const OperatorId op = stage.operators[at];
    if (const auto& mask = problem.model.operators[op].mask; mask && loops > 1) {
      fill(of_tokens, at, known_tokens(*mask));
    }
    if (split.operators[at].of_experts) {
      if (const auto routing = routing_of(problem, op)) {
        fill(of_experts, at, by_replica(expert_loads(*routing, stage.experts.ranks)));
      }
    }
  }
  tokens_ = equal_ ? std::vector<std::vector<double>>() : std::move(of_tokens);
  of_experts_ = equal_ ? std::vector<std::vector<double>>() : std::move(of_experts);
}

std::size_t ReplicaLoads::number_of(std::size_t replica) const {
  return equal_ ? 0 : loop_of(replica) * experts_ + replica % experts_;
}

std::vector<double> ReplicaLoads::of(std::size_t replica) const {
  if (equal_) {
    return {};
  }
  std::vector<double> loads = tokens_[loop_of(replica)];
  for (std::size_t at = 0; at < loads.size(); ++at) {
    loads[at] *= of_experts_[replica % experts_][at];
  }
  return loads;
}

std::size_t ReplicaLoads::loop_of(std::size_t replica) const {
  const Context& context = stage_.context;
  return replica % static_cast<std::size_t>(context.ranks) / static_cast<std::size_t>(context.heads);
}

void ReplicaLoads::fill(std::vector<std::vector<double>>& loads, std::size_t at, const std::vector<double>& of_ranks) {
  for (std::size_t rank = 0; rank < loads.size(); ++rank) {
    loads[rank][at] = of_ranks[rank];
    equal_ = equal_ && std::abs(of_ranks[rank] - 1) < 1e-12;
  }
}

const std::vector<double>& ReplicaLoads::known_tokens(const AttentionMask& mask) {
  auto found = std::find_if(masks_.begin(), masks_.end(), [&](const auto& one) { return one.first == mask; });
  if (found == masks_.end()) {
    found = masks_.insert(masks_.end(), {mask, token_loads(mask, stage_.context)});
  }
  return found->second;
}

std::vector<double> ReplicaLoads::by_replica(const std::vector<double>& of_ranks) const {
  std::vector<double> loads(experts_, 0);
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    double& load = loads[rank * experts_ / of_ranks.size()];
    load = std::max(load, of_ranks[rank]);
  }
  return loads;
}

const ReplicaSeconds& ReplicaTimes::of(std::size_t replica, const std::vector<DeviceId>& devices,
                                       const AxisGroups& groups) {
  const double share = stage_.share(replica);
  const std::vector<int> types = problem_.types_of(devices);
  const auto [slot, is_new] = known_.try_emplace({types, share, figures_of(groups), loads_.number_of(replica)});
  if (is_new) {
    slot->second = stage_.axes().alone() ? stage_times(problem_, stage_, split_, types.front(), share)
                                         : group_times(std::make_shared<const GroupPasses>(group_passes(
                                               problem_, stage_, split_, types, groups, share, loads_.of(replica))));
  }
  return slot->second;
}

std::vector<std::size_t> ReplicaTimes::loads() const {
  std::vector<std::size_t> numbers;
  for (std::size_t replica = 0; replica < stage_.replicas() && !loads_.equal(); ++replica) {
    numbers.push_back(loads_.number_of(replica));
  }
  return numbers;
}

} // namespace stagecraft
