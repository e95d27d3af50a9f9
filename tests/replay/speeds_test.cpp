// Devices that change speed while a graph runs: every engine, by hand and against each other.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/replay/engines.hpp"
#include "sim/replay/speeds.hpp"
#include "tests/catch.hpp"
#include "tests/schedule/random_pipelines.hpp"

namespace stagecraft {
namespace {

Approx near(double value) { return Approx(value).epsilon(1e-9); }

// One device, computations one after the other.
TaskGraph tasks_in_a_row(const std::vector<double>& seconds) {
  TaskGraph graph;
  for (std::size_t k = 0; k < seconds.size(); ++k) {
    graph.works.push_back({.device = 0, .seconds = Seconds{seconds[k]}});
    graph.work.push_back(static_cast<std::int32_t>(k));
    graph.micro_batch.push_back(0);
    graph.waits.push_back(0);
    graph.program.push_back(static_cast<TaskId>(k));
  }
  graph.successor_begin.assign(seconds.size() + 1, 0);
  graph.devices = {0};
  graph.program_begin = {0, static_cast<std::int32_t>(seconds.size())};
  graph.fixed_memory.resize(1);
  return graph;
}

std::vector<double> finishes(const EngineRow& engine, const std::vector<double>& seconds,
                             const std::vector<SpeedChange>& speeds) {
  const TaskGraph graph = tasks_in_a_row(seconds);
  const Platform platform = make_star_platform({}, 1, BytesPerSecond{1}, Seconds{0});
  const ReplayRequest request{graph, platform, 1, speeds};
  return engine.replay(std::span(&request, 1)).front().finish;
}

TEST_CASE("a computation under way slows down and speeds up again", "[replay][speeds]") {
  // 4 s of work: 2 s done at 2, half speed until 6: 2 s more, just done at 6.
  // Then 3 s from 6 on at full speed: 9. Then 1 s, at twice the speed from 9.5: half a second, then a quarter: 9.75.
  const std::vector<SpeedChange> speeds = {
      {0, Seconds{2}, 0.5}, {0, Seconds{6}, 1}, {0, Seconds{9.5}, 2}, {7, Seconds{0}, 0.1}}; // device 7 has no task
  for (const EngineRow& engine : kEngines) {
    INFO(engine.name);
    const std::vector<double> finish = finishes(engine, {4, 3, 1}, speeds);
    CHECK(finish[0] == near(6));
    CHECK(finish[1] == near(9));
    CHECK(finish[2] == near(9.75));
  }
}

TEST_CASE("a device that is slow from the start takes longer in proportion", "[replay][speeds]") {
  for (const EngineRow& engine : kEngines) {
    INFO(engine.name);
    CHECK(finishes(engine, {1, 2}, {{0, Seconds{0}, 0.25}})[1] == near(12));
    CHECK(finishes(engine, {1, 2}, {{0, Seconds{0}, 4}})[1] == near(0.75));
    CHECK(finishes(engine, {1, 2}, {{0, Seconds{100}, 4}})[1] == near(3));
  }
}

TEST_CASE("engines agree on pipelines whose devices change speed, and requests do not disturb each other",
          "[replay][speeds]") {
  std::mt19937 random(3);
  for (int n = 0; n < 30; ++n) {
    const int ranks = test::pick(random, 2, 4);
    test::Pipeline pipeline;
    pipeline.ranks = ranks;
    pipeline.bandwidth = 100;
    pipeline.latency = 0.25;
    for (int s = 0; s < ranks; ++s) { // computations longer than transfers: no two flows meet on a link
      pipeline.stages.push_back({2 + test::pick_seconds(random), 2 + test::pick_seconds(random), 0, 1});
      pipeline.bytes.push_back(test::pick(random, 1, 40));
    }
    const PlanCost cost = test::cost_of(pipeline);
    const Platform platform = test::star_of(pipeline);
    Router router(platform);
    const Schedule schedule = test::schedule_of("gpipe", ranks, test::pick(random, 1, 5));
    const TaskGraph graph = make_task_graph({.cost = cost, .schedule = schedule, .router = router});
    std::vector<SpeedChange> speeds;
    for (int k = 0; k < 4; ++k) {
      speeds.push_back({test::pick(random, 0, ranks - 1), Seconds{static_cast<double>(test::pick(random, 0, 30))},
                        0.25 * test::pick(random, 1, 4)});
    }
    const std::vector<ReplayRequest> requests = {
        {graph, platform, 2}, {graph, platform, 2, speeds}, {graph, platform, 2}};
    const auto expected = replay_simgrid(requests);
    CHECK(expected[0].finish.back() == near(expected[2].finish.back()));
    CHECK(expected[1].finish.back() > expected[0].finish.back() * (1 - 1e-9));
    const auto full = replay_simgrid_full(requests);
    for (std::size_t r = 0; r < requests.size(); ++r) {
      double worst = 0;
      for (std::size_t i = 0; i < expected[r].finish.size(); ++i) {
        worst = std::max(worst, std::abs(full[r].finish[i] - expected[r].finish[i]) / expected[r].finish[i]);
      }
      CHECK(worst < 1e-9);
    }
  }
}

} // namespace
} // namespace stagecraft
