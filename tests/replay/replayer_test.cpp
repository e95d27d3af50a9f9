// Graphs shared out over processes have the timelines that one process gives them, in their order.
// SPDX-License-Identifier: Apache-2.0
#include <deque>
#include <numeric>

#include "sim/replay/clock_start.hpp"
#include "sim/replay/engines.hpp"
#include "sim/replay/replayer.hpp"
#include "tests/catch.hpp"
#include "tests/replay/flows.hpp"

namespace stagecraft::test {
namespace {

TEST_CASE("timelines are the same for any number of workers", "[replay][workers]") {
  constexpr int kGraphs = 170, kFlows = 250; // enough work for two batches
  const Platform platform = links_of({1e3, 2e3, 3e3});
  std::deque<TaskGraph> graphs;
  std::vector<ReplayRequest> requests;
  for (int g = 0; g < kGraphs; ++g) {
    std::vector<Flow> flows;
    for (int f = 0; f < kFlows + g; ++f) {
      flows.push_back({.bytes = 10.0 + (f * 7 + g) % 13, .legs = {{(f + g) % 3}}, .start = 0.1 * (f % 5)});
    }
    graphs.push_back(graph_of(platform, flows));
    requests.push_back({graphs.back(), platform});
  }
  for (const EngineRow& engine : kEngines) {
    INFO(engine.name);
    const std::vector<Timeline> alone = Replayer(engine.replay, 1)(requests);
    for (const int workers : {2, 5}) {
      const std::vector<Timeline> shared = Replayer(engine.replay, workers)(requests);
      REQUIRE(shared.size() == alone.size());
      for (std::size_t g = 0; g < alone.size(); ++g) {
        CHECK(shared[g].iterations == alone[g].iterations);
        CHECK(shared[g].window == alone[g].window);
        CHECK(shared[g].start == alone[g].start);
        CHECK(shared[g].finish == alone[g].finish);
      }
    }
  }
}

// A task that waits for itself is never ready. The error is the engine's own, whichever process met it.
TEST_CASE("what a graph fails of is said as in one process", "[replay][workers]") {
  const Platform platform = links_of({1e3});
  const TaskGraph sound = graph_of(platform, std::vector<Flow>(20'000, {.bytes = 1, .legs = {{0}}}));
  TaskGraph stuck = sound;
  stuck.waits.front() = 1;
  const std::vector<ReplayRequest> requests = {{sound, platform}, {stuck, platform}, {sound, platform}};
  const auto error_of = [&](int workers) {
    try {
      Replayer(replay_analytic, workers)(requests);
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_FALSE(error_of(1).empty());
  CHECK(error_of(3) == error_of(1));
}

// Tasks of a second, one after another on one device: 8 take 2^9 s on a clock with room for 64 such graphs, which
// rounds them to 2^-44 s; 200,000 would be rounded to 2^-29 s each, and have a clock with room for 8 iterations.
TEST_CASE("the clock of a graph of many events starts earlier, so that these are rounded less", "[replay]") {
  const Platform platform = links_of({1});
  const auto graph_of = [](int tasks) {
    TaskGraph graph;
    graph.devices = {0};
    graph.works = {Work{.device = 0, .seconds = Seconds{1}}};
    graph.work.assign(tasks, 0);
    graph.program.resize(tasks);
    std::iota(graph.program.begin(), graph.program.end(), 0);
    graph.program_begin = {0, tasks};
    return graph;
  };
  const TaskGraph few = graph_of(8), many = graph_of(200'000);
  CHECK(clock_start({few, platform}) == 1024); // beyond 64 x 8
  CHECK_FALSE(has_own_clock({few, platform}));
  CHECK(clock_start({many, platform}) == 2 * 1024 * 1024); // beyond 8 x 200,000
  CHECK(has_own_clock({many, platform}));
}

} // namespace
} // namespace stagecraft::test
