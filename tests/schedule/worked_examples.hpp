// Checks of a worked example: an order, and what equal stages make of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/catch.hpp"
#include "tests/schedule/event_loop.hpp"
#include "tests/schedule/worked_orders.hpp"

namespace stagecraft::test {

/// Where backward is not split, `weight` is 0 and `input` the whole of it.
struct Example {
  std::string_view schedule;
  int ranks, micro_batches, chunks;
  double forward, input, weight; ///< of a device
  double latency;                ///< of a hop
  double makespan, period;       ///< period 0: not given
  std::vector<int> held;         ///< per rank, in chunks; none: not given
  double fused = 1;              ///< time of a forward and a backward fused, as a share of the sum
};

inline void check_order(const WorkedOrder& worked) {
  CAPTURE(worked.schedule, worked.ranks, worked.micro_batches, worked.chunks);
  const Schedule schedule = schedule_of(worked.schedule, worked.ranks, worked.micro_batches, worked.chunks);
  REQUIRE(schedule.orders.size() == worked.orders.size());
  for (std::size_t rank = 0; rank < worked.orders.size(); ++rank) {
    CHECK(to_text(schedule.orders[rank]) == worked.orders[rank]);
  }
}

inline Pipeline pipeline_of(const Example& example) {
  Pipeline pipeline =
      equal_stages(example.ranks, example.chunks, {example.forward, example.input, example.weight}, example.latency);
  pipeline.stage_placement = schedule_row(example.schedule).stage_placement;
  pipeline.fused = example.fused;
  return pipeline;
}

inline void check_example(const Example& example) {
  CAPTURE(example.schedule, example.ranks, example.micro_batches, example.chunks, example.latency, example.fused);
  const Schedule schedule = schedule_of(example.schedule, example.ranks, example.micro_batches, example.chunks);
  const Pipeline pipeline = pipeline_of(example);
  CHECK(makespan_of(pipeline, schedule) == near(example.makespan));
  if (example.period > 0) {
    CHECK(period_of(pipeline, schedule) == near(example.period));
  }
  if (!example.held.empty()) {
    CHECK(most_held(schedule) == example.held);
  }
}

} // namespace stagecraft::test
