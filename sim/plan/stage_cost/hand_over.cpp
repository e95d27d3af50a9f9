// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/hand_over.hpp"

#include <span>
#include <utility>
#include <vector>

#include "sim/plan/stage_cost/collective_seconds.hpp"

namespace stagecraft {
namespace {

// How long a replica's devices gather what a forward gets, and what a backward gets.
std::pair<Seconds, Seconds> gathering(const Problem& problem, const Borders& borders,
                                      std::span<const ReplicaCost> ranks) {
  std::vector<DeviceId> devices;
  for (const ReplicaCost& rank : ranks) {
    devices.push_back(rank.device);
  }
  const CollectiveSeconds gather(problem, CollectiveKind::all_gather, devices);
  const double share = ranks.front().share;
  return {gather.of(borders.received * share), gather.of(borders.sent * share)};
}

// The part of a pass in which the device rests: it does so while it hands over.
double rest_with(double part, Seconds computing, Seconds handing) {
  return handing.value > 0 ? (computing * part + handing) / (computing + handing) : part;
}

void lengthen(ReplicaCost& rank, const HandOver& forward, const HandOver& backward, const GroupPasses* passes) {
  const Seconds ahead = passes != nullptr ? passes->forward.exchanged.all : Seconds{0};
  const Seconds back = passes != nullptr ? passes->backward.exchanged.all : Seconds{0};
  rank.rest.forward = rest_with(rank.rest.forward, rank.forward - ahead, forward.all());
  rank.rest.backward = rest_with(rank.rest.backward, rank.backward() - back, backward.all());
  rank.forward_hand_over = forward;
  rank.backward_hand_over = backward;
  rank.forward += forward.all();
  rank.backward_input += backward.all();
}

} // namespace

void add_hand_over(const Problem& problem, const Borders& borders, bool gathers, StageCost& cost) {
  const Seconds each = problem.training.hand_over;
  if (borders.from + borders.to == 0 || (each.value == 0 && !gathers)) {
    return;
  }
  const Seconds from = each * borders.from, to = each * borders.to;
  const auto degree = static_cast<std::size_t>(cost.tensor_parallel);
  for (std::size_t first = 0; first < cost.replicas.size(); first += degree) {
    const std::span<ReplicaCost> ranks(&cost.replicas[first], degree);
    const TensorGroup* const group = cost.group_of(first);
    const auto [received, sent] = gathers ? gathering(problem, borders, ranks) : std::pair<Seconds, Seconds>{};
    for (ReplicaCost& rank : ranks) {
      lengthen(rank, {from + received, to}, {to + sent, from}, group != nullptr ? group->passes.get() : nullptr);
    }
  }
}

} // namespace stagecraft
