// Disturbed worlds: what jitter, stragglers, slow links and failures do to a graph and to the time of an iteration.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/replay/what_if/perturb.hpp"
#include "tests/catch.hpp"
#include "tests/schedule/pipelines.hpp"

namespace stagecraft {
namespace {

using test::near;

test::PipelineRun two_devices() { // F 1, B 2, 4 B between them at 2 B/s
  test::Pipeline pipeline = test::equal_stages(2, 1, {1, 2, 0});
  pipeline.bytes = {4};
  pipeline.bandwidth = 2;
  return test::run(pipeline, test::schedule_of("1f1b", 2, 1));
}

double end_of(const test::PipelineRun& run, const Perturbation& world) {
  test::PipelineRun disturbed = run;
  disturbed.platform = with_bandwidths(run.platform, world);
  Random random(1);
  disturbed.graph = perturb(run.graph, disturbed.platform, world, random);
  const ReplayRequest request{disturbed.graph, disturbed.platform};
  disturbed.timeline = replay_analytic({&request, 1}).front();
  return disturbed.end();
}

TEST_CASE("a straggler takes longer by its speed, a slow link by its bandwidth", "[replay][perturb]") {
  const test::PipelineRun run = two_devices();
  CHECK(end_of(run, {}) == near(1 + 2 + 1 + 2 + 2 + 2)); // F, hop, F, B, hop, B
  CHECK(end_of(run, {.speed = {1, 0.5}}) == near(1 + 2 + 2 + 4 + 2 + 2));
  Perturbation slow{.bandwidth = std::vector<double>(run.platform.links.size(), 0.5)};
  CHECK(end_of(run, slow) == near(1 + 4 + 1 + 2 + 4 + 2));
}

TEST_CASE("jitter has the mean and the deviation asked for, and is the same for the same seed", "[replay][perturb]") {
  const test::PipelineRun run = two_devices();
  const Perturbation world{.jitter = 0.1};
  constexpr int kDraws = 4000;
  double sum = 0;
  double squares = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    Random random(7, static_cast<std::uint64_t>(draw));
    const TaskGraph graph = perturb(run.graph, run.platform, world, random);
    const double forward = graph.works[graph.work[graph.program_of(0)[0]]].seconds.value;
    sum += forward;
    squares += forward * forward;
  }
  const double mean = sum / kDraws;
  CHECK(mean == Approx(1).margin(4 * 0.1 / std::sqrt(kDraws))); // four standard errors
  CHECK(std::sqrt(squares / kDraws - mean * mean) == Approx(0.1).margin(0.006));
  Random one(3);
  Random other(3);
  const TaskGraph first = perturb(run.graph, run.platform, world, one);
  const TaskGraph second = perturb(run.graph, run.platform, world, other);
  for (TaskId task = 0; task < first.tasks(); ++task) {
    CHECK(first.works[first.work[task]].seconds == second.works[second.work[task]].seconds);
  }
  CHECK(run.graph.works.size() < first.works.size()); // tasks draw on their own
}

TEST_CASE("without failures, checkpoints alone cost time", "[replay][perturb]") {
  Random random(1);
  const Failures never{Seconds{1e300}, 10, Seconds{5}, Seconds{60}, 100};
  CHECK(with_failures(Seconds{2}, 8, never, random).value == near(2 + 0.5));
  CHECK(mean_with_failures(Seconds{2}, 8, never).value == near(2 + 0.5));
}

TEST_CASE("failures cost the mean that renewal theory says", "[replay][perturb]") {
  // A segment of s seconds under failures at rate r with restarts of R takes (e^(r s) - 1) (1/r + R) on average
  // (each try ends at a failure with the time until it and a restart lost).
  const Failures failures{Seconds{4000}, 10, Seconds{5}, Seconds{60}, 10};
  const double rate = 8.0 / 4000;
  const double segment = 10 * 2.0 + 5;
  const double expected = (std::exp(rate * segment) - 1) * (1 / rate + 60) / 10;
  constexpr int kDraws = 20000;
  double sum = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    Random random(1, static_cast<std::uint64_t>(draw));
    sum += with_failures(Seconds{2}, 8, failures, random).value;
  }
  CHECK(sum / kDraws == Approx(expected).epsilon(0.01));
  CHECK(mean_with_failures(Seconds{2}, 8, failures).value == near(expected));
}

TEST_CASE("failures that leave no time for a checkpoint never end", "[replay][perturb]") {
  Random random(1);
  CHECK(std::isinf(with_failures(Seconds{100}, 1, {Seconds{1}, 100, Seconds{0}, Seconds{1}, 100}, random).value));
}

} // namespace
} // namespace stagecraft
