// Random uneven pipelines with communication, the same for the same seed everywhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <random>
#include <tuple>

#include "tests/schedule/pipelines.hpp"

namespace stagecraft::test {

/// A random number in [low, high]; unlike the distributions of <random>, the same with every standard library.
inline int pick(std::mt19937& random, int low, int high) {
  return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
}
inline double pick_seconds(std::mt19937& random) { return pick(random, 0, 1000) / 128.0; }

/// A schedule without times of its own, made once for each shape.
inline const ScheduleResult& schedule_of_shape(const ScheduleRow& row, int ranks, int micro_batches, int chunks) {
  static std::map<std::tuple<std::string_view, int, int, int>, ScheduleResult> known;
  const auto [slot, fresh] = known.try_emplace({row.name, ranks, micro_batches, chunks});
  if (fresh) {
    slot->second = make_schedule(row, {ranks, micro_batches, chunks});
  }
  return slot->second;
}

struct RandomCase {
  Pipeline pipeline;
  Schedule schedule;
  int iterations = 1;
  bool barrier = true;
};

/// A case that the schedule can run: up to 6 ranks and 3 chunks, up to 12 micro-batches, up to 3 iterations.
inline RandomCase random_case(const ScheduleRow& row, std::mt19937& random) {
  for (;;) {
    RandomCase one;
    const int ranks = pick(random, 1, 6);
    const int chunks = chunks_of(row, pick(random, 1, 3));
    const ScheduleResult& made = schedule_of_shape(row, ranks, pick(random, 1, 12), chunks);
    if (!std::holds_alternative<Schedule>(made)) {
      continue;
    }
    one.schedule = std::get<Schedule>(made);
    one.iterations = pick(random, 1, 3);
    one.barrier = pick(random, 0, 1) == 1;
    one.pipeline.ranks = ranks;
    one.pipeline.stage_placement = row.stage_placement;
    one.pipeline.bandwidth = pick(random, 1, 100);
    one.pipeline.latency = pick_seconds(random) / 8;
    for (int s = 0; s < ranks * chunks; ++s) {
      one.pipeline.stages.push_back(
          {pick_seconds(random), pick_seconds(random), pick_seconds(random), pick_seconds(random) / 8});
      if (s > 0) {
        one.pipeline.bytes.push_back(pick(random, 0, 200));
      }
    }
    return one;
  }
}

} // namespace stagecraft::test
