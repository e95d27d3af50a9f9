// Computations that slow each other down: worked by hand, and compared with a simulation in small time steps.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/replay/contention.hpp"
#include "tests/catch.hpp"
#include "tests/schedule/random_pipelines.hpp"

namespace stagecraft {
namespace {

// A device with one task for each of these times, in seconds.
TaskGraph side_by_side(const std::vector<double>& seconds) {
  TaskGraph graph;
  graph.successor_begin.assign(seconds.size() + 1, 0);
  graph.waits.assign(seconds.size(), 0);
  graph.program_begin = {0};
  for (std::size_t device = 0; device < seconds.size(); ++device) {
    const auto number = static_cast<std::int32_t>(device);
    graph.works.push_back({.device = number, .seconds = Seconds{seconds[device]}});
    graph.work.push_back(number);
    graph.micro_batch.push_back(0);
    graph.devices.push_back(number);
    graph.fixed_memory.emplace_back();
    graph.program.push_back(number);
    graph.program_begin.push_back(number + 1);
  }
  return graph;
}

std::vector<double> finishes(const TaskGraph& graph, int iterations, const std::vector<double>& slowdowns) {
  return replay_contended(replay_analytic, {}, graph, iterations, slowdowns).finish;
}

// 2 s at half the speed take 4; meanwhile 2 of the other's 4 s are done, and 2 more follow at full speed.
TEST_CASE("computations slow each other while both run", "[replay][contention]") {
  CHECK(finishes(side_by_side({4, 2}), 1, {1, 2, 2, 1}) == std::vector<double>{6, 4});
}

// Only the first suffers: until the other ends at 2 s it has done 1 of its 4, so it ends at 5.
TEST_CASE("a slowdown of one device leaves the other's speed alone", "[replay][contention]") {
  CHECK(finishes(side_by_side({4, 2}), 1, {1, 2, 1, 1}) == std::vector<double>{5, 2});
}

// Two others that double and triple: 1 s takes 6 while both are there.
TEST_CASE("slowdowns of several others multiply", "[replay][contention]") {
  const std::vector<double> slowdowns = {1, 2, 3, 1, 1, 1, 1, 1, 1};
  CHECK(finishes(side_by_side({1, 6, 6}), 1, slowdowns) == std::vector<double>{6, 6, 6});
}

// The second device does 2 s twice, the first 4 s twice, all at half the speed until the second ends at 8 s. Then the
// first has done 4 and does its other 4 s alone.
TEST_CASE("iterations follow one another under contention", "[replay][contention]") {
  CHECK(finishes(side_by_side({4, 2}), 2, {1, 2, 2, 1}) == std::vector<double>{8, 4, 12, 8});
}

// Simulates in steps much shorter than any task, with the speeds at the beginning of each step.
std::vector<double> in_small_steps(const TaskGraph& graph, const std::vector<double>& slowdowns, double step) {
  const auto tasks = static_cast<std::size_t>(graph.tasks());
  std::vector<double> left(tasks), finish(tasks, -1);
  std::vector<std::int32_t> waits = graph.waits;
  std::vector<std::size_t> at(graph.devices.size(), 0);
  for (std::size_t task = 0; task < tasks; ++task) {
    left[task] = graph.works[graph.work[task]].seconds.value;
  }
  std::size_t done = 0;
  for (double time = 0; done < tasks; time += step) {
    std::vector<TaskId> running;
    const auto end = [&](TaskId task) {
      finish[task] = time;
      ++done;
      for (const TaskId next : graph.successors_of(task)) {
        --waits[next];
      }
    };
    for (bool again = true; again;) { // what takes no time ends at once
      again = false;
      running.clear();
      for (TaskId task = 0; task < graph.tasks(); ++task) {
        const Work& work = graph.works[graph.work[task]];
        const auto program = work.computes() ? graph.program_of(work.device) : std::span<const TaskId>{};
        const bool first = !work.computes() || program[std::min(at[work.device], program.size() - 1)] == task;
        if (finish[task] < 0 && waits[task] == 0 && first) {
          if (left[task] > 1e-9) {
            running.push_back(task);
          } else {
            at[std::max(0, work.device)] += work.computes() ? 1 : 0;
            end(task);
            again = true;
          }
        }
      }
    }
    for (const TaskId task : running) {
      double slowdown = 1;
      for (const TaskId other : running) {
        const Work &mine = graph.works[graph.work[task]], &its = graph.works[graph.work[other]];
        const bool beside = mine.computes() && its.computes() && mine.device != its.device;
        slowdown *= beside ? slowdowns[graph.work[task] * graph.works.size() + graph.work[other]] : 1;
      }
      left[task] -= step / slowdown;
    }
  }
  return finish;
}

TEST_CASE("random pipelines under contention end as a simulation in small steps does", "[replay][contention]") {
  std::mt19937 random(7);
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1"}) {
    for (int trial = 0; trial < 4; ++trial) {
      test::Pipeline pipeline;
      pipeline.ranks = test::pick(random, 2, 3);
      pipeline.latency = 0.125;
      for (int stage = 0; stage < pipeline.ranks; ++stage) {
        const auto seconds = [&] { return test::pick(random, 1, 8) / 4.0; };
        pipeline.stages.push_back({seconds(), seconds(), seconds(), seconds()});
      }
      const test::PipelineRun run = test::run(pipeline, test::schedule_of(schedule, pipeline.ranks, 4));
      std::vector<double> slowdowns;
      for (std::size_t pair = 0; pair < run.graph.works.size() * run.graph.works.size(); ++pair) {
        slowdowns.push_back(1 + test::pick(random, 0, 8) / 8.0);
      }
      constexpr double kStep = 1.0 / 2048;
      const std::vector<double> expected = in_small_steps(run.graph, slowdowns, kStep);
      const Timeline timeline = replay_contended(replay_analytic, run.platform, run.graph, 1, slowdowns);
      INFO(schedule << " " << trial);
      for (std::size_t task = 0; task < expected.size(); ++task) {
        CHECK(timeline.finish[task] == Approx(expected[task]).margin(0.1)); // steps add up along the pipeline
      }
    }
  }
}

TEST_CASE("contention without slowdowns changes nothing", "[replay][contention]") {
  std::mt19937 random(3);
  for (int trial = 0; trial < 20; ++trial) {
    const test::RandomCase one = test::random_case(schedules()[test::pick(random, 0, 5)], random);
    const test::PipelineRun run = test::run(one.pipeline, one.schedule, {one.iterations, one.barrier});
    if (run.graph.overlaps) {
      continue;
    }
    const std::size_t works = run.graph.works.size();
    const Timeline timeline = replay_contended(replay_analytic, run.platform, run.graph, one.iterations,
                                               std::vector<double>(works * works, 1));
    CHECK(timeline.finish == run.timeline.finish);
    CHECK(timeline.iterations == one.iterations);
  }
}

} // namespace
} // namespace stagecraft
