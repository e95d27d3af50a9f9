// Pipelines for schedules that go by times: requests made from them, and their steady state as the replay finds it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/schedule/random_pipelines.hpp"

namespace stagecraft::test {

/// The pipeline's times and hops.
inline ScheduleRequest request_of(const Pipeline& pipeline, int micro_batches) {
  ScheduleRequest request{.ranks = pipeline.ranks, .micro_batches = micro_batches};
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    const StageTimes& times = pipeline.stages[s];
    request.figures.push_back(
        {.forward = times.forward, .backward_input = times.input, .backward_weight = times.weight});
    if (s > 0) {
      request.hops.push_back(pipeline.latency +
                             (pipeline.bytes.empty() ? 0 : pipeline.bytes[s - 1] / pipeline.bandwidth));
    }
  }
  return request;
}

/// Stages that differ by up to a factor of three, hops of up to a forward.
inline Pipeline uneven_pipeline(std::mt19937& random, int ranks) {
  Pipeline pipeline{.ranks = ranks, .bandwidth = 128, .latency = pick(random, 0, 64) / 128.0};
  for (int s = 0; s < ranks; ++s) {
    const double speed = pick(random, 64, 192) / 128.0;
    pipeline.stages.push_back({.forward = speed * pick(random, 96, 160) / 128.0,
                               .input = speed * pick(random, 96, 192) / 128.0,
                               .weight = speed * pick(random, 64, 160) / 128.0});
    if (s > 0) {
      pipeline.bytes.push_back(pick(random, 0, 64));
    }
  }
  return pipeline;
}

/// Without a barrier, after a dozen iterations.
inline double replayed_period(const Pipeline& pipeline, const Schedule& schedule) {
  const PipelineRun replayed = run(pipeline, schedule, {.iterations = 18, .barrier = false});
  return (replayed.end(17) - replayed.end(11)) / 6;
}

/// The most activations, of the request's unit, that a rank ever holds.
inline double most_held(const Schedule& schedule, const ScheduleRequest& request, std::size_t rank) {
  double held = 0;
  double most = 0;
  for (const Action& action : schedule.orders[rank]) {
    const StageFigures& figures = request.figures[action.stage];
    const double kept = schedule.splits_backward ? figures.activation * figures.kept : 0;
    held += action.kind == TaskKind::forward    ? figures.activation
            : action.kind == TaskKind::backward ? kept - figures.activation
            : action.kind == TaskKind::weight   ? -kept
                                                : 0;
    most = std::max(most, held);
  }
  return most;
}

} // namespace stagecraft::test
