// Schedules without a flush: 1F1B whose pipeline never empties. They keep several versions of the weights, or one that
// is late.
// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {
namespace {

// Adds the orders of a stage with `replicas` replicas, each of which takes every replicas-th micro-batch. An order
// alternates one forward and one backward; a forward runs `ahead` turns before the backward of its micro-batch.
void add_stage(Schedule& schedule, int stage, int replicas, int ahead, int micro_batches) {
  for (int replica = 0; replica < replicas; ++replica) {
    std::vector<Action>& order = schedule.orders.emplace_back();
    order.reserve(static_cast<std::size_t>(micro_batches) / replicas * 2);
    for (int m = replica; m < micro_batches; m += replicas) {
      order.push_back({TaskKind::forward, m + ahead * replicas, stage});
      order.push_back({TaskKind::backward, m, stage});
    }
  }
}

Schedule straight(const ScheduleRequest& request) {
  Schedule schedule;
  schedule.flushes = false;
  for (int s = 0; s < request.ranks; ++s) {
    add_stage(schedule, s, 1, request.ranks - 1 - s, request.micro_batches);
  }
  return schedule;
}

// [stage]: the mean staleness over the micro-batches of a round, for orders with one optimiser step per round. A
// forward that runs n rounds before its own round sees weights n steps older than those that its gradient updates.
std::vector<double> mean_staleness(const Schedule& schedule, int stages, int micro_batches) {
  std::vector<double> staleness(stages, 0.0);
  for (const auto& order : schedule.orders) {
    for (const Action& action : order) {
      if (action.kind == TaskKind::forward) {
        const int rounds = action.micro_batch / micro_batches;
        staleness[action.stage] += static_cast<double>(rounds) / micro_batches;
      }
    }
  }
  return staleness;
}

} // namespace

ScheduleResult make_pipedream(const ScheduleRequest& request) {
  const std::vector<int> replicas = request.replicas.empty() ? std::vector<int>(request.ranks, 1) : request.replicas;
  long turns = 1; // micro-batches after which the turns of all replicas begin again
  for (const int r : replicas) {
    turns = std::min(std::lcm(turns, static_cast<long>(r)), 1L << 30);
  }
  if (request.micro_batches % turns != 0) {
    const long below = request.micro_batches / turns * turns;
    return Infeasible{"pipedream gives its replicas whole micro-batches in turn; " +
                      std::to_string(request.micro_batches) + " is no multiple of " + std::to_string(turns) +
                      "; nearest: " + (below > 0 ? std::to_string(below) + " or " : "") +
                      std::to_string(below + turns)};
  }
  Schedule schedule;
  schedule.flushes = false;
  schedule.steps_each_micro_batch = true;
  int left = std::accumulate(replicas.begin(), replicas.end(), 0); // number of ranks from this stage on
  for (int s = 0; s < static_cast<int>(replicas.size()); ++s) {
    // Narayanan et al. 2019, §3.2: as many micro-batches in flight as keep the ranks from this stage on busy.
    const int ahead = (left - 1) / replicas[s];
    add_stage(schedule, s, replicas[s], ahead, request.micro_batches);
    schedule.versions.push_back(ahead + 1);
    schedule.staleness.push_back(ahead);
    left -= replicas[s];
  }
  return schedule;
}

ScheduleResult make_pipedream_2bw(const ScheduleRequest& request) {
  if (request.micro_batches < request.ranks) { // Narayanan et al. 2021b, §3.1: else two versions are too few
    return Infeasible{
        "pipedream-2bw needs as many micro-batches as ranks, or two versions of the weights are too few; " +
        std::to_string(request.micro_batches) + " on " + std::to_string(request.ranks) +
        " ranks; nearest: " + std::to_string(request.ranks)};
  }
  Schedule schedule = straight(request);
  schedule.versions.assign(request.ranks, 2);
  schedule.staleness.assign(request.ranks, 1);
  return schedule;
}

ScheduleResult make_pipemare(const ScheduleRequest& request) {
  Schedule schedule = straight(request);
  schedule.staleness = mean_staleness(schedule, request.ranks, request.micro_batches);
  return schedule;
}

ScheduleResult make_xpipe(const ScheduleRequest& request) {
  Schedule schedule = straight(request);
  schedule.predicts_weights = true;
  schedule.versions.assign(request.ranks, 2); // the latest and the predicted
  schedule.staleness = mean_staleness(schedule, request.ranks, request.micro_batches);
  return schedule;
}

} // namespace stagecraft
