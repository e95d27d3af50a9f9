// Graphs with measured parts instead of the stated ones, and graphs that repeat a timeline.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <random>

#include "sim/timeline/part_times.hpp"
#include "tests/catch.hpp"
#include "tests/schedule/random_pipelines.hpp"

namespace stagecraft {
namespace {

// 40 B at 4 B/s and 1 s of latency take 11 s as asked; measured, the leg needs 3 s and then carries 2 B/s: 23 s.
TEST_CASE("a graph with parts takes the parts' times", "[timeline][parts]") {
  test::Pipeline pipeline = test::equal_stages(2, 1, {1, 2, 0}, 1);
  pipeline.bytes = {40};
  pipeline.bandwidth = 4;
  const test::PipelineRun run = test::run(pipeline, test::schedule_of("gpipe", 2, 1));
  PartTimes parts{Seconds{0.5}, std::vector<PathCost>(run.graph.legs.size(), {Seconds{3}, 0.5})};
  const TaskGraph graph = with_parts(run.graph, parts);
  const Platform platform = with_parts(run.platform, run.graph, parts);
  // F0, there, F0, B0, back, B0: 1.5 + 23 + 1.5 + 2.5 + 23 + 2.5, then the steps of 0 + 0.5
  const double expected = 54.5;
  for (const ReplayFunction engine : {replay_analytic, replay_simgrid}) {
    const ReplayRequest request{graph, platform};
    const Timeline timeline = engine({&request, 1}).front();
    CHECK(*std::max_element(timeline.finish.begin(), timeline.finish.end()) == Approx(expected));
  }
  for (const Link& link : platform.links) { // all are on a leg, and as wide as it
    CHECK(link.bandwidth.value == Approx(2));
  }
}

// Works measured alone replace what the graph says, at the pace that the others leave each device: on device 0
// 3 x 1.5 + 0.5, on device 1 5 x 1.2 + 0.5 s. The median of two measurements is the mean of everything in them.
TEST_CASE("a graph with measured works takes their times", "[timeline][parts]") {
  const test::PipelineRun run = test::run(test::equal_stages(2, 1, {1, 2, 0}), test::schedule_of("gpipe", 2, 1));
  PartTimes parts{Seconds{0.5}, std::vector<PathCost>(run.graph.legs.size(), {Seconds{2}, 1}), {}, {1.5, 1.2}};
  PartTimes other{Seconds{1.5}, std::vector<PathCost>(run.graph.legs.size(), {Seconds{4}, 3}), {}, {1.7, 1.0}};
  for (const Work& work : run.graph.works) {
    parts.works.push_back(Seconds{work.device == 0 ? 3.0 : 5.0});
    other.works.push_back(Seconds{work.device == 0 ? 5.0 : 7.0});
  }
  for (const Work& work : with_parts(run.graph, parts).works) {
    CHECK((!work.computes() || work.seconds.value == Approx(work.device == 0 ? 5 : 6.5)));
  }
  const PartTimes both = median(std::array{parts, other});
  CHECK(both.computation.value == Approx(1));
  CHECK(both.slowdowns[0] == Approx(1.6));
  CHECK(both.slowdowns[1] == Approx(1.1));
  for (const PathCost& leg : both.legs) {
    CHECK(leg.latency.value == Approx(3));
    CHECK(leg.seconds_per_byte == Approx(2));
  }
  for (std::size_t work = 0; work < both.works.size(); ++work) {
    CHECK(both.works[work].value == Approx(run.graph.works[work].device == 0 ? 4 : 6));
  }
}

// A ring pays its leg's latency several times: once as measured, otherwise as stated.
TEST_CASE("latencies beyond the leg's own stay", "[timeline][parts]") {
  test::PipelineRun run = test::run(test::equal_stages(2, 1, {1, 1, 0}, 1), test::schedule_of("gpipe", 2, 1));
  for (Work& work : run.graph.works) {
    work.latency = work.transfers() ? Seconds{6} : work.latency;
  }
  const PartTimes parts{Seconds{0}, std::vector<PathCost>(run.graph.legs.size(), {Seconds{1.5}, 0})};
  for (const Work& work : with_parts(run.graph, parts).works) {
    CHECK(work.latency.value == Approx(work.transfers() ? 6.5 : 0));
  }
}

// A replay of the durations alone gives the timeline that they came from.
TEST_CASE("retelling a timeline gives the same timeline", "[timeline][parts]") {
  const bool ordered = GENERATE(false, true);
  for (const ScheduleRow& row : schedules()) {
    std::mt19937 random(3);
    for (int trial = 0; trial < 5; ++trial) {
      const test::RandomCase one = test::random_case(row, random);
      const test::PipelineRun run = test::run(
          one.pipeline, one.schedule, {.iterations = one.iterations, .barrier = one.barrier, .ordered_sends = ordered});
      const TaskGraph told = with_durations(run.graph, run.timeline);
      const ReplayRequest request{told, run.platform};
      const Timeline again = replay_analytic({&request, 1}).front();
      INFO(row.name << ", trial " << trial);
      REQUIRE(again.finish.size() == run.timeline.finish.size());
      for (std::size_t entry = 0; entry < again.finish.size(); ++entry) {
        CHECK(again.finish[entry] == Approx(run.timeline.finish[entry]));
      }
    }
  }
}

} // namespace
} // namespace stagecraft
