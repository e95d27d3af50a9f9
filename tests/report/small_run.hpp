// Small runs for pictures and traces: stages of given times on a star of devices, replayed by the analytic engine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "sim/base/named_table.hpp"
#include "sim/platform/load_platform.hpp"
#include "sim/platform/route.hpp"
#include "sim/replay/replay.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/schedule/task_graph/task_graph.hpp"

namespace stagecraft::test {

struct SmallRequest {
  std::string_view schedule = "1f1b";
  int ranks = 4;
  int micro_batches = 8;
  int chunks = 1;
  double forward = 1, backward = 2; ///< seconds of a stage per micro-batch
  double optimizer = 0;
  double bytes = 0; ///< between neighbouring stages
  double bandwidth = 1;
  double stash = 0;   ///< bytes kept per micro-batch
  double weights = 0; ///< bytes of a stage
  int replicas = 1;   ///< of each stage; more than one only with one rank
  int iterations = 1;
};

struct SmallRun {
  Platform platform;
  TaskGraph graph;
  Timeline timeline;
};

/// Stage s runs on device s mod ranks, replica r on device r; half of the backward pass is the weight gradient.
inline PlanCost small_cost(const SmallRequest& request) {
  PlanCost cost;
  for (int s = 0; s < request.ranks * request.chunks; ++s) {
    StageCost stage;
    stage.gradients = Bytes{request.weights};
    for (int r = 0; r < request.replicas; ++r) {
      ReplicaCost replica;
      replica.device = s % request.ranks + r;
      replica.share = 1.0 / request.replicas;
      replica.forward = Seconds{request.forward};
      replica.backward_input = replica.backward_weight = Seconds{request.backward / 2};
      replica.optimizer = Seconds{request.optimizer};
      replica.memory.weights = Bytes{request.weights};
      replica.memory.per_micro_batch = Bytes{request.stash};
      stage.replicas.push_back(replica);
    }
    cost.stages.push_back(stage);
    if (s > 0) {
      cost.edges.push_back({s - 1, s, Bytes{request.bytes}});
    }
  }
  return cost;
}

inline SmallRun run(const SmallRequest& request) {
  DeviceType type;
  type.name = "x";
  const int devices = request.ranks * request.replicas;
  SmallRun result{make_star_platform(type, devices, BytesPerSecond{request.bandwidth}, Seconds{0}), {}, {}};
  const PlanCost cost = small_cost(request);
  const ScheduleRow& row = find_by_name(schedules(), request.schedule, "schedule", {"test"});
  const ScheduleResult made = make_schedule(row, {request.ranks, request.micro_batches, request.chunks});
  Router router(result.platform);
  result.graph = make_task_graph({.cost = cost, .schedule = std::get<Schedule>(made), .router = router});
  const ReplayRequest replay{result.graph, result.platform, request.iterations};
  result.timeline = replay_analytic(std::span(&replay, 1)).front();
  return result;
}

} // namespace stagecraft::test
