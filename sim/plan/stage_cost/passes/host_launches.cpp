// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/passes/host_launches.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

namespace stagecraft {
namespace {

// Launches for each kernel of an operator that the model counts: those of the framework, in Python, as the host's speed
// lets it; or, where the products of a mixture are launched one by one, a product for each expert of the rank. That is
// a loop in C++, of which no host's speed is known but that of the one it was measured on.
double launches_each(const Operator& what, const HostLaunches& host, const Shard& shard, double host_speed) {
  if (what.captured) {
    return 0;
  }
  return host.by_expert && is_grouped_product(what) ? products_of(what, shard) : host.kernels / host_speed;
}

PassLaunches launches_of(const Operator& what, const HostLaunches& host, const Shard& shard, double host_speed) {
  if (what.host_kernels && !what.captured) {
    const HostKernels& own = *what.host_kernels;
    const double forward = own.forward - (what.counting_captured ? own.counting : 0);
    return {host.each * (forward / host_speed), host.each * (own.backward / host_speed), Seconds{0}};
  }
  const Seconds one = host.each * launches_each(what, host, shard, host_speed);
  return {one * what.forward.launches(), one * what.backward_input.launches(), one * what.backward_weight.launches()};
}

// Of a dispatch's launches forward, those before the host knows how many rows each expert gets.
Seconds counting_launches(const Operator& what, const HostLaunches& host, double host_speed) {
  const bool known = what.host_kernels && !what.captured && !what.counting_captured;
  return host.each * (known ? what.host_kernels->counting / host_speed : 0);
}

// Whether the host waits for the device in the operator's forward, and for how many launches before it does.
bool waits_forward(const Operator& what) {
  return what.counted_by_host || (what.host_kernels && what.host_kernels->before_wait && !what.captured);
}

Seconds launches_before_wait(const Operator& what, const HostLaunches& host, double host_speed) {
  return what.counted_by_host ? counting_launches(what, host, host_speed)
                              : host.each * (*what.host_kernels->before_wait / host_speed);
}

OperatorLaunches launches_with(const Operator& what, const HostLaunches& host, const Shard& shard,
                               const BegunExchanges& begun, double host_speed) {
  const PassLaunches kernels = launches_of(what, host, shard, host_speed);
  const Seconds exchange = what.captured ? Seconds{0} : host.each * (host.kernels / host_speed);
  const Seconds forward = kernels.forward + exchange * begun.forward;
  const bool waits = waits_forward(what);
  const Seconds early = waits ? launches_before_wait(what, host, host_speed) : forward;
  return {.forward = early,
          .late = forward - early,
          .waits = waits,
          .backward_input = kernels.backward_input + exchange * begun.backward,
          .backward_weight = kernels.backward_weight};
}

// Tensors of its own parameters that have a gradient. Where its tensors are not known: a weight and, if it has more
// parameters than the gradient of its input reads, a bias.
double trained_tensors(const Operator& what) {
  if (!what.signature) {
    const double weights = what.backward_input.moved_parameters;
    return what.parameters == 0 ? 0 : weights > 0 && weights < what.parameters ? 2 : 1;
  }
  const std::vector<ParameterSignature>& all = what.signature->parameters;
  return static_cast<double>(std::count_if(all.begin(), all.end(), std::mem_fn(&ParameterSignature::stepped)));
}

Shard shard_at(std::span<const Shard> shards, std::size_t at) { return shards.empty() ? Shard{} : shards[at]; }

} // namespace

double products_of(const Operator& what, const Shard& shard) {
  if (!is_grouped_product(what)) {
    return 1;
  }
  const double ranks = static_cast<double>(shard.replicas) * (shard.by_expert ? shard.degree : 1);
  return std::max(1.0, what.forward.calls.front().shape[0] / ranks);
}

double slowest_host(const Platform& platform, std::span<const DeviceId> devices) {
  double slowest = std::numeric_limits<double>::infinity();
  for (const DeviceId device : devices) {
    slowest = std::min(slowest, platform.type_of(device).host_speed);
  }
  return slowest;
}

Seconds sum_of(std::span<const Seconds> times) { return std::accumulate(times.begin(), times.end(), Seconds{0}); }

double longer_beside_host(Seconds launching, Seconds computing, Seconds exchanging) {
  return computing.value > 0 && launching > computing + exchanging ? (launching - exchanging) / computing : 1;
}

PassLaunches launches_of(const Problem& problem, std::span<const OperatorId> operators, std::span<const Shard> shards,
                         double host_speed) {
  PassLaunches sum;
  for (std::size_t at = 0; at < operators.size(); ++at) {
    const PassLaunches one = launches_of(problem.model.operators[operators[at]], problem.training.launches,
                                         shard_at(shards, at), host_speed);
    sum.forward += one.forward;
    sum.backward_input += one.backward_input;
    sum.backward_weight += one.backward_weight;
  }
  return sum;
}

std::vector<OperatorLaunches> launches_of_each(const Problem& problem, std::span<const OperatorId> operators,
                                               std::span<const Shard> shards, std::span<const BegunExchanges> begun,
                                               double host_speed) {
  std::vector<OperatorLaunches> each;
  for (std::size_t at = 0; at < operators.size(); ++at) {
    each.push_back(launches_with(problem.model.operators[operators[at]], problem.training.launches,
                                 shard_at(shards, at), begun.empty() ? BegunExchanges{} : begun[at], host_speed));
  }
  return each;
}

Seconds step_launches(const Problem& problem, std::span<const OperatorId> operators, double host_speed) {
  const Training& training = problem.training;
  if (!training.launches.by_tensor) {
    return Seconds{0};
  }
  double tensors = 0;
  for (const OperatorId op : operators) {
    tensors += trained_tensors(problem.model.operators[op]);
  }
  return training.launches.each * (tensors * training.optimizer->kernels / host_speed);
}

std::vector<Seconds> forward_beside_host(std::span<const OperatorLaunches> launches, std::span<const Seconds> alone,
                                         std::span<const Seconds> exchanging) {
  std::vector<Seconds> taken(alone.begin(), alone.end());
  if (std::none_of(launches.begin(), launches.end(), std::mem_fn(&OperatorLaunches::waits))) {
    Seconds launching;
    for (const OperatorLaunches& one : launches) {
      launching += one.forward;
    }
    const double longer = longer_beside_host(launching, sum_of(alone), sum_of(exchanging));
    for (Seconds& time : taken) {
      time = time * longer;
    }
    return taken;
  }
  Seconds launched, computed; // until when
  for (std::size_t at = 0; at < launches.size(); ++at) {
    const Seconds before = computed;
    launched += launches[at].forward;
    if (launches[at].waits) { // and launches the rest beside a device at rest
      computed = std::max(computed, launched);
      launched = computed + launches[at].late;
    }
    computed = std::max(computed, launched) + alone[at];
    taken[at] = computed - before;
    computed += exchanging.empty() ? Seconds{0} : exchanging[at];
  }
  return taken;
}

} // namespace stagecraft
