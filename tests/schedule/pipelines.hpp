// Pipelines for tests: stages of given times on a star of devices, ordered by a schedule, replayed by an engine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/named_table.hpp"
#include "sim/platform/load_platform.hpp"
#include "sim/replay/replay.hpp"
#include "sim/schedule/place.hpp"
#include "sim/schedule/task_graph/order_transfers.hpp"
#include "sim/schedule/task_graph/task_graph.hpp"

namespace stagecraft::test {

/// Seconds of one stage: per micro-batch, and per iteration for the optimiser.
struct StageTimes {
  double forward = 1, input = 1, weight = 1;
  double optimizer = 0;
  double recompute = 0;
};

/// Stage s lives where `stage_placement` says; `bytes[s]` cross from stage s to s + 1 and back.
struct Pipeline {
  std::vector<StageTimes> stages;
  int ranks = 1;
  std::vector<double> bytes; ///< one less than stages; none: 0
  double bandwidth = 1;
  double latency = 0;
  StagePlacement stage_placement = StagePlacement::interleaved;
  double fused = 1; ///< time of a forward and a backward fused, as a share of the sum of their times
};

/// `ranks` devices that hold `chunks` equal stages each; a device's whole stage takes the times given.
inline Pipeline equal_stages(int ranks, int chunks, const StageTimes& device, double latency = 0) {
  Pipeline pipeline;
  const StageTimes part{device.forward / chunks, device.input / chunks, device.weight / chunks,
                        device.optimizer / chunks, device.recompute / chunks};
  pipeline.stages.assign(static_cast<std::size_t>(ranks) * chunks, part);
  pipeline.ranks = ranks;
  pipeline.latency = latency;
  return pipeline;
}

/// A device per rank, and stages where `stage_placement` says.
inline Plan plan_of(const Pipeline& pipeline) {
  Plan plan;
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    plan.stages.push_back({.devices = {rank_of(static_cast<int>(s), pipeline.ranks, pipeline.stage_placement)}});
  }
  return plan;
}

inline PlanCost cost_of(const Pipeline& pipeline, const Plan& plan) {
  PlanCost cost;
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    const StageTimes& times = pipeline.stages[s];
    StageCost stage{.turns = plan.stages[s].turns};
    for (const DeviceId device : plan.stages[s].devices) {
      ReplicaCost replica;
      replica.device = device;
      replica.forward = Seconds{times.forward};
      replica.backward_input = Seconds{times.input};
      replica.backward_weight = Seconds{times.weight};
      replica.recompute = Seconds{times.recompute};
      replica.optimizer = Seconds{times.optimizer};
      stage.replicas.push_back(replica);
    }
    cost.stages.push_back(std::move(stage));
    if (s > 0) {
      const double bytes = pipeline.bytes.empty() ? 0 : pipeline.bytes[s - 1];
      cost.edges.push_back({static_cast<int>(s) - 1, static_cast<int>(s), Bytes{bytes}});
      cost.cut.push_back(Bytes{bytes});
    }
  }
  return cost;
}

inline PlanCost cost_of(const Pipeline& pipeline) { return cost_of(pipeline, plan_of(pipeline)); }

/// A pipeline as a schedule runs it: stages on as many ranks as its orders say.
struct PlacedPipeline {
  PlanCost cost;
  std::vector<int> rank_of;
};

inline PlacedPipeline placed(const Pipeline& pipeline, const Schedule& schedule) {
  const PlacedPlan plan = std::get<PlacedPlan>(place(plan_of(pipeline), schedule));
  return {cost_of(pipeline, plan.plan), plan.rank_of};
}

inline Platform star_of(const Pipeline& pipeline) {
  DeviceType type;
  type.name = "x";
  return make_star_platform(type, pipeline.ranks, BytesPerSecond{pipeline.bandwidth}, Seconds{pipeline.latency});
}

inline const ScheduleRow& schedule_row(std::string_view name) {
  return find_by_name(schedules(), name, "schedule", {"test", 0, 0});
}

inline Schedule schedule_of(std::string_view name, int ranks, int micro_batches, int chunks = 1) {
  return std::get<Schedule>(make_schedule(schedule_row(name), {ranks, micro_batches, chunks}));
}

struct PipelineRun {
  Platform platform;
  TaskGraph graph;
  Timeline timeline;

  /// Finish of the k-th item of a device's program in an iteration; the last items are the optimiser steps.
  double finish(std::size_t device, std::size_t k, int iteration = 0) const {
    return timeline.finish[static_cast<std::size_t>(iteration) * graph.tasks() + graph.program_of(device)[k]];
  }
  /// When the last device ends an iteration.
  double end(int iteration = 0) const {
    double latest = 0;
    for (std::size_t device = 0; device < graph.devices.size(); ++device) {
      latest = std::max(latest, finish(device, graph.program_of(device).size() - 1, iteration));
    }
    return latest;
  }
};

struct RunOptions {
  int iterations = 1;
  bool barrier = true;
  bool early_recompute = true;
  bool blocking_sends = false;
  bool ordered_sends = false;
  ReplayFunction engine = replay_analytic;
};

inline PipelineRun run(const Pipeline& pipeline, const Schedule& schedule, const RunOptions& options = {}) {
  PipelineRun result{star_of(pipeline), {}, {}};
  const PlacedPipeline placed = test::placed(pipeline, schedule);
  Router router(result.platform);
  result.graph = make_task_graph({.cost = placed.cost,
                                  .schedule = schedule,
                                  .router = router,
                                  .barrier = options.barrier,
                                  .blocking_sends = options.blocking_sends,
                                  .early_recompute = options.early_recompute,
                                  .fused = [&](const FusedPair&) { return pipeline.fused; },
                                  .rank_of = placed.rank_of});
  if (options.ordered_sends) {
    order_transfers(result.graph);
  }
  const ReplayRequest request{result.graph, result.platform, options.iterations};
  result.timeline = options.engine(std::span(&request, 1)).front();
  return result;
}

/// Start and finish of all that a device sends between stages, in the order of its starts.
inline std::vector<std::pair<double, double>> sends(const PipelineRun& run, std::int32_t device) {
  std::vector<std::pair<double, double>> times;
  for (std::size_t entry = 0; entry < run.timeline.start.size(); ++entry) {
    const Work& work = run.graph.works[run.graph.work[entry % run.graph.tasks()]];
    if (work.kind == TaskKind::transfer && work.device == device) {
      times.emplace_back(run.timeline.start[entry], run.timeline.finish[entry]);
    }
  }
  std::sort(times.begin(), times.end());
  return times;
}

} // namespace stagecraft::test
