// Periods of schedules whose iterations overlap: steady, and the same as a much longer replay tells.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/improves.hpp"
#include "sim/replay/clock_start.hpp"
#include "sim/replay/in_order.hpp"
#include "sim/replay/max_min_run.hpp"
#include "sim/replay/recurrence.hpp"
#include "sim/schedule/task_graph/order_transfers.hpp"
#include "sim/study/measure/measure_graph.hpp"
#include "sim/timeline/steady.hpp"
#include "tests/catch.hpp"
#include "tests/schedule/random_pipelines.hpp"

namespace stagecraft {
namespace {

constexpr int kShort = 8, kLong = 3000; // iterations

const char* const kNames[] = {"pipedream", "pipedream-2bw", "pipemare", "xpipe"};

// A pipeline of unequal stages on a star, under a schedule without a flush.
test::RandomCase random_case(std::mt19937& random) {
  for (;;) {
    test::RandomCase one = test::random_case(test::schedule_row(kNames[test::pick(random, 0, 3)]), random);
    if (one.pipeline.ranks > 1) {
      return one;
    }
  }
}

TaskGraph graph_of(const test::RandomCase& one, const Platform& platform) {
  const test::PlacedPipeline placed = test::placed(one.pipeline, one.schedule);
  Router router(platform);
  return make_task_graph({.cost = placed.cost, .schedule = one.schedule, .router = router, .rank_of = placed.rank_of});
}

double steady_period(ReplayFunction replay, const TaskGraph& graph, const Platform& platform) {
  const ReplayRequest request{graph, platform, kShort};
  return measure(graph, replay_steady(replay, {&request, 1}).front(), platform).iteration.value;
}

// From the middle of a long replay to nearly its end, on the first device.
double long_period(ReplayFunction replay, const TaskGraph& graph, const Platform& platform, int iterations) {
  const ReplayRequest request{graph, platform, iterations};
  const Timeline timeline = replay({&request, 1}).front();
  const int end = iterations - iterations / 10, begin = iterations / 2;
  const double* const finish = timeline.finish.data() + graph.program_of(0).back();
  return (finish[static_cast<std::size_t>(end) * graph.tasks()] -
          finish[static_cast<std::size_t>(begin) * graph.tasks()]) /
         (end - begin);
}

// Of random cases: the period measured, against that of a replay of so many iterations.
void check_periods(ReplayFunction replay, std::mt19937& random, int cases, int iterations, double tolerance) {
  for (int n = 0; n < cases; ++n) {
    const test::RandomCase one = random_case(random);
    const Platform platform = test::star_of(one.pipeline);
    const TaskGraph graph = graph_of(one, platform);
    CAPTURE(n, one.schedule.name, one.pipeline.ranks, one.schedule.micro_batches);
    CHECK(steady_period(replay, graph, platform) ==
          Approx(long_period(replay, graph, platform, iterations)).epsilon(tolerance));
  }
}

TEST_CASE("a period without a flush is that of a replay of thousands of iterations", "[study][steady]") {
  std::mt19937 random(29);
  check_periods(replay_analytic, random, 120, kLong, kSteady);
}

// All devices send through links that several flows share.
TEST_CASE("so it is where transfers share links", "[study][steady]") {
  std::mt19937 random(31);
  check_periods(replay_simgrid, random, 12, kLong / 20, 10 * kSteady);
}

// The first iterations of a whole replay of eight times as many, of twice as many, and so on until their period is
// steady.
Timeline first_steady(const TaskGraph& graph, const Timeline& whole, int few) {
  for (int iterations = few;; iterations *= 2) {
    Timeline first = whole;
    cut_short(graph, first, iterations);
    if (find_steady(graph, first).spread <= kSteady || iterations == whole.iterations) {
      return first;
    }
  }
}

// To the last bit. What ends later is left out, or the same as well.
void check_counts(const TaskGraph& graph, const Timeline& stopped, const Timeline& whole) {
  const Steadiness expected = find_steady(graph, whole), found = find_steady(graph, stopped);
  REQUIRE(stopped.iterations == whole.iterations);
  CHECK(found.iterations == expected.iterations);
  CHECK(found.window == expected.window);
  CHECK(found.spread == expected.spread);
  const std::size_t counted = static_cast<std::size_t>(expected.iterations) * graph.tasks();
  CHECK(std::equal(whole.finish.begin(), whole.finish.begin() + counted, stopped.finish.begin()));
  CHECK(std::equal(whole.start.begin(), whole.start.begin() + counted, stopped.start.begin()));
}

// On one clock, since a period may hang on how times are rounded.
TEST_CASE("one replay that stops where its period shows tells what replays of more and more iterations tell",
          "[study][steady]") {
  std::mt19937 random(37);
  int left_out = 0, longer = 0;
  for (int n = 0; n < 60; ++n) {
    const test::RandomCase one = random_case(random);
    const Platform platform = test::star_of(one.pipeline);
    const TaskGraph graph = graph_of(one, platform);
    ReplayRequest watched{graph, platform, kShort << n % 3};
    watched.most_iterations = 8 * watched.iterations;
    const ReplayRequest all{graph, platform, watched.most_iterations};
    const double origin = clock_start(watched);
    const Timeline stopped = MaxMinRun(watched, origin).take();
    CAPTURE(n, one.schedule.name, one.pipeline.ranks, one.schedule.micro_batches);
    check_counts(graph, stopped, first_steady(graph, MaxMinRun(all, origin).take(), watched.iterations));
    left_out += stopped.end() == kInfinity ? 1 : 0;
    longer += stopped.iterations > watched.iterations ? 1 : 0;
  }
  CHECK(left_out > 40);
  CHECK(longer > 10);
}

Timeline replay_ahead(const ReplayRequest& request) {
  Recurrence<> recurrence(request);
  recurrence.start();
  return recurrence.take();
}

TEST_CASE("in one order of tasks, iteration by iteration, times are those of devices that run ahead",
          "[study][steady]") {
  std::mt19937 random(43);
  int longer = 0;
  for (int n = 0; n < 60; ++n) {
    const test::RandomCase one = random_case(random);
    const Platform platform = test::star_of(one.pipeline);
    TaskGraph graph = graph_of(one, platform);
    order_transfers(graph);
    const ReplayRequest request{
        .graph = graph, .platform = platform, .iterations = kShort, .most_iterations = 8 * kShort};
    const std::optional<Timeline> in_order = replay_in_order(request);
    CAPTURE(n, one.schedule.name, one.pipeline.ranks, one.schedule.micro_batches);
    REQUIRE(in_order);
    const Timeline whole = replay_ahead({graph, platform, request.most_iterations});
    check_counts(graph, *in_order, first_steady(graph, whole, kShort));
    const Timeline ahead = replay_ahead({graph, platform, in_order->iterations});
    CHECK(in_order->start == ahead.start);
    CHECK(in_order->finish == ahead.finish);
    longer += in_order->iterations > kShort ? 1 : 0;
  }
  CHECK(longer > 10);
}

TEST_CASE("a replay on SimGrid that stops when a device runs out of work tells the same period", "[study][steady]") {
  std::mt19937 random(41);
  int left_out = 0;
  for (int n = 0; n < 12; ++n) {
    const test::RandomCase one = random_case(random);
    const Platform platform = test::star_of(one.pipeline);
    const TaskGraph graph = graph_of(one, platform);
    const ReplayRequest whole{graph, platform, kShort};
    ReplayRequest watched = whole;
    watched.most_iterations = watched.iterations;
    const Timeline stopped = replay_simgrid({&watched, 1}).front();
    CAPTURE(n, one.schedule.name, one.pipeline.ranks, one.schedule.micro_batches);
    check_counts(graph, stopped, replay_simgrid({&whole, 1}).front());
    left_out += stopped.end() == kInfinity ? 1 : 0;
  }
  CHECK(left_out > 4);
}

// Two equal stages without transfers: from the second iteration on, all tasks keep one pace.
TEST_CASE("a period is steady over four iterations, once all tasks keep one pace", "[study][steady]") {
  test::Pipeline pipeline = test::equal_stages(2, 1, {1, 1, 1, 0, 0});
  const Schedule schedule = test::schedule_of("pipemare", 2, 4);
  for (const int iterations : {4, 5, 6, 7, 12}) {
    const test::PipelineRun run = test::run(pipeline, schedule, {.iterations = iterations});
    const Steadiness found = find_steady(run.graph, run.timeline);
    CAPTURE(iterations);
    // Device 0 is done with its last round before device 1, whose last iteration is therefore left out. In the first
    // one the pipeline fills, so that it takes 4 in the window, one before it and these two.
    CHECK(found.iterations == iterations - 1);
    CHECK((found.spread <= kSteady) == (iterations >= 7));
    if (iterations >= 7) {
      CHECK(found.window == 4);
      CHECK(found.spread == 0);
    }
  }
}

} // namespace
} // namespace stagecraft
