// The host that launches a stage's kernels, one after another (docs/model.md, "The host that launches").
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "sim/cost/kernel_power.hpp"
#include "sim/plan/problem.hpp"

namespace stagecraft {

/// Seconds in which the host launches the kernels of each pass of some operators: no pass takes less.
struct PassLaunches {
  Seconds forward, backward_input, backward_weight;

  Seconds backward() const { return backward_input + backward_weight; }
};

/// Of what a replica's device computes, without exchanges, the parts in which it draws idle power, as good as: its host
/// has not launched the next kernel, or kernels leave it partly idle (at_rest() in sim/cost/kernel_power.hpp).
struct AtRest {
  double forward = 0, backward = 0, step = 0;
};

/// 0 where nothing is computed.
inline AtRest parts_of(const RestOfPasses& rest, Seconds forward, Seconds backward) {
  const auto part = [](Seconds of, Seconds all) { return all.value > 0 ? std::min(1.0, of / all) : 0; };
  return {.forward = part(rest.forward, forward), .backward = part(rest.backward, backward)};
}

/// Exchanges that are begun for an operator, each of which the host launches, as it does a kernel.
struct BegunExchanges {
  int forward = 0, backward = 0;
};

/// Seconds in which the host launches an operator, pass by pass, with what is exchanged for it.
struct OperatorLaunches {
  Seconds forward;    ///< before it waits
  Seconds late;       ///< of a forward, behind the wait
  bool waits = false; ///< in the forward, until the device has counted how many rows each expert gets
  Seconds backward_input, backward_weight;
};

/// Products that a rank's kernel of the operator is made of: of a mixture's experts one for each that the rank has.
double products_of(const Operator& what, const Shard& shard);

/// The lowest host speed of some devices.
double slowest_host(const Platform& platform, std::span<const DeviceId> devices);

/// Of times one after another.
Seconds sum_of(std::span<const Seconds> times);

/// Of operators of the model. `shards`: what a rank has of each; empty: all of each. `host_speed`: the device type's.
PassLaunches launches_of(const Problem& problem, std::span<const OperatorId> operators,
                         std::span<const Shard> shards = {}, double host_speed = 1);

/// Of each of the operators. `begun`: exchanges for it; empty: none.
std::vector<OperatorLaunches> launches_of_each(const Problem& problem, std::span<const OperatorId> operators,
                                               std::span<const Shard> shards, std::span<const BegunExchanges> begun,
                                               double host_speed);

/// Seconds in which the host launches an optimiser's step over the operators' parameters, tensor by tensor; 0 where the
/// training has it fused.
Seconds step_launches(const Problem& problem, std::span<const OperatorId> operators, double host_speed = 1);

/// By how much a pass computes longer whose host launches on while it computes and exchanges data.
double longer_beside_host(Seconds launching, Seconds computing, Seconds exchanging);

/// What each of some operators, in order, takes of a forward, of which the host is a part; `alone` is what its kernels
/// take, `exchanging` how long the device computes nothing behind each and the host launches on (empty: not at all).
/// The host runs ahead of the device, except where it waits for the counts of a mixture. Where it does not, all are
/// stretched alike if launching takes longer than they and the exchanges do.
std::vector<Seconds> forward_beside_host(std::span<const OperatorLaunches> launches, std::span<const Seconds> alone,
                                         std::span<const Seconds> exchanging = {});

} // namespace stagecraft
