// Every schedule on random uneven pipelines with communication: the analytic engine against the reference event loop.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <random>

#include "tests/catch.hpp"
#include "tests/schedule/event_loop.hpp"
#include "tests/schedule/random_pipelines.hpp"

namespace stagecraft {
namespace {

constexpr int kCases = 1000;

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

TEST_CASE("the analytic engine equals the reference event loop", "[schedule][reference]") {
  for (const ScheduleRow& row : schedules()) {
    std::mt19937 random(7);
    double worst = 0;
    int compared = 0;
    for (int n = 0; n < kCases; ++n) {
      const test::RandomCase one = test::random_case(row, random);
      const auto expected = test::EventLoop(one.pipeline, one.schedule, one.barrier).run(one.iterations);
      const test::PipelineRun run =
          test::run(one.pipeline, one.schedule, {.iterations = one.iterations, .barrier = one.barrier});
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
    CAPTURE(row.name);
    CHECK(worst < 1e-9);
    CHECK(compared > kCases);
  }
}

} // namespace
} // namespace stagecraft
