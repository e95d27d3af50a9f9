// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/what_if/perturb.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/improves.hpp"

namespace stagecraft {
namespace {

bool jitters(const Work& work) { return work.computes() && work.seconds.value > 0; }

} // namespace

Platform with_bandwidths(const Platform& platform, const Perturbation& perturbation) {
  Platform disturbed = platform;
  for (std::size_t link = 0; link < perturbation.bandwidth.size(); ++link) {
    disturbed.links[link].bandwidth = disturbed.links[link].bandwidth * perturbation.bandwidth[link];
  }
  return disturbed;
}

TaskGraph perturb(const TaskGraph& graph, const Platform& disturbed, const Perturbation& perturbation, Random& random) {
  TaskGraph drawn = graph;
  if (!perturbation.bandwidth.empty()) {
    for (Leg& leg : drawn.legs) {
      leg.bandwidth = std::min(leg.bandwidth, narrowest_of(disturbed, leg.links).bandwidth);
    }
  }
  for (Work& work : drawn.works) {
    if (work.transfers()) {
      work.seconds = work.latency + Bytes{work.bytes} / drawn.legs[work.leg].bandwidth;
    } else if (work.computes() && !perturbation.speed.empty()) {
      work.seconds = work.seconds / perturbation.speed[graph.devices[work.device]];
    }
  }
  for (TaskId task = 0; perturbation.jitter > 0 && task < drawn.tasks(); ++task) {
    if (jitters(drawn.works[drawn.work[task]])) {
      constexpr double kLeast = 0.1;
      Work work = drawn.works[drawn.work[task]];
      work.seconds = work.seconds * std::max(kLeast, 1 + perturbation.jitter * random.normal());
      drawn.work[task] = static_cast<std::int32_t>(drawn.works.size());
      drawn.works.push_back(work);
    }
  }
  return drawn;
}

Seconds with_failures(Seconds iteration, int devices, const Failures& failures, Random& random) {
  constexpr int kMostFailures = 100'000;
  const double rate = devices / failures.mean_time_between.value;
  const auto next_failure = [&] { return -std::log(1 - random.unit()) / rate; };
  double total = 0;
  double until_failure = next_failure();
  int failed = 0;
  for (int done = 0; done < failures.iterations;) {
    const int segment = std::min(failures.checkpoint_every, failures.iterations - done);
    const double needs = segment * iteration.value + failures.checkpoint.value;
    if (needs <= until_failure) {
      total += needs;
      until_failure -= needs;
      done += segment;
      continue;
    }
    total += until_failure + failures.restart.value; // restart, losing the work since the last checkpoint
    until_failure = next_failure();
    if (++failed == kMostFailures) {
      return Seconds{kInfinity};
    }
  }
  return Seconds{total / failures.iterations};
}

Seconds mean_with_failures(Seconds iteration, int devices, const Failures& failures) {
  // (e^(n s / MTBF) - 1) (MTBF / n + restart) for k iterations that with their checkpoint take s
  const Seconds between = failures.mean_time_between / devices;
  const Seconds segment = iteration * failures.checkpoint_every + failures.checkpoint;
  return std::expm1(segment / between) / failures.checkpoint_every * (between + failures.restart);
}

} // namespace stagecraft
