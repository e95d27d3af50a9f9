// Every schedule on random uneven pipelines with communication: the analytic engine against the reference event loop.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <random>

#include "tests/catch.hpp"
#include "tests/schedule/event_loop.hpp"
#include "tests/schedule/random_pipelines.hpp"

namespace stagecraft {
namespace {

constexpr int kCases = 400;

TEST_CASE("the reference event loop gives a hand-made answer", "[schedule][reference]") {
  // Two ranks, one micro-batch, a hop of 0.5 + 3 / 2 = 2 s: F 1, hop, F 2, B 4 + 1, hop, B 3 + 1; then, together
  // because of the barrier, optimiser steps of 0.25 and 0.5.
  test::Pipeline pipeline{{{1, 3, 1, 0.25}, {2, 4, 1, 0.5}}, 2, {3}, 2, 0.5};
  const Schedule schedule = test::schedule_of("1f1b", 2, 1);
  const auto finish = test::EventLoop(pipeline, schedule, true).run(1);
  CHECK(finish == std::vector<std::vector<double>>{{1, 16, 16.25}, {5, 10, 16.5}});
  const auto local = test::EventLoop(pipeline, schedule, false).run(1);
  CHECK(local == std::vector<std::vector<double>>{{1, 16, 16.25}, {5, 10, 10.5}});
}

TEST_CASE("the reference event loop sends in order where it is asked to", "[schedule][reference]") {
  // Two micro-batches forward, F = 1: what F makes at 1 and 2 flows for 4 s and arrives 3 s later.
  // Alone, F0@1 starts at 8 and F1@1 at 9; in order, the second flows from 5 to 9 and arrives at 12.
  const test::Pipeline pipeline{{{1, 0, 0}, {1, 0, 0}}, 2, {8}, 2, 3};
  const Schedule schedule = test::schedule_of("gpipe", 2, 2);
  CHECK(test::EventLoop(pipeline, schedule, false).run(1)[1][1] == 10);
  CHECK(test::EventLoop(pipeline, schedule, false, true).run(1)[1][1] == 13);
}

TEST_CASE("the analytic engine equals the reference event loop", "[schedule][reference]") {
  const bool ordered = GENERATE(false, true);
  const double longer = GENERATE(1.0, 16.0); // latencies, from far less to far more than computations
  for (const ScheduleRow& row : schedules()) {
    std::mt19937 random(7);
    double worst = 0;
    int compared = 0;
    for (int n = 0; n < kCases; ++n) {
      test::RandomCase one = test::random_case(row, random);
      one.pipeline.latency *= longer;
      const auto expected = test::EventLoop(one.pipeline, one.schedule, one.barrier, ordered).run(one.iterations);
      const test::PipelineRun run = test::run(
          one.pipeline, one.schedule, {.iterations = one.iterations, .barrier = one.barrier, .ordered_sends = ordered});
      for (std::size_t device = 0; device < expected.size(); ++device) {
        const auto rank = static_cast<std::size_t>(run.graph.devices[device]);
        const std::size_t length = run.graph.program_of(device).size();
        REQUIRE(expected[rank].size() == length * one.iterations);
        for (std::size_t k = 0; k < expected[rank].size(); ++k) {
          const double got = run.finish(device, k % length, static_cast<int>(k / length));
          worst = std::max(worst, std::abs(got - expected[rank][k]) / std::max(1.0, expected[rank][k]));
          ++compared;
        }
      }
    }
    CAPTURE(row.name, ordered, longer);
    CHECK(worst < 1e-9);
    CHECK(compared > kCases);
  }
}

} // namespace
} // namespace stagecraft
