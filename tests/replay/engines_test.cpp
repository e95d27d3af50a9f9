// What both engines must do: equal times where links are private, collectives, steps, batches, errors.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numeric>
#include <random>

#include "sim/replay/engines.hpp"
#include "tests/catch.hpp"
#include "tests/replay/flows.hpp"
#include "tests/schedule/event_loop.hpp"
#include "tests/schedule/random_pipelines.hpp"

namespace stagecraft {
namespace {

using test::near;
using PipelineCase = test::RandomCase;

// A link from each device to each other one.
Platform mesh_of(int devices, double bandwidth, double latency) {
  Platform platform;
  platform.types.emplace_back();
  platform.nodes.push_back({"node", {}});
  for (DeviceId device = 0; device < devices; ++device) {
    platform.devices.push_back({"device-" + std::to_string(device), 0, 0});
    platform.vertices.push_back({Vertex::Kind::device, platform.devices.back().name, device});
  }
  for (DeviceId from = 0; from < devices; ++from) {
    for (DeviceId to = from + 1; to < devices; ++to) {
      platform.links.push_back({"link", from, to, BytesPerSecond{bandwidth}, Seconds{latency}});
      platform.links.push_back({"link", to, from, BytesPerSecond{bandwidth}, Seconds{latency}});
    }
  }
  return platform;
}

// The largest difference between an engine's replay and the reference event loop.
double difference(const PipelineCase& one, const TaskGraph& graph, const Timeline& timeline) {
  const auto expected =
      test::EventLoop(one.pipeline, one.schedule, one.barrier, graph.channels > 0).run(one.iterations);
  double worst = 0;
  for (std::size_t device = 0; device < expected.size(); ++device) {
    const auto rank = static_cast<std::size_t>(graph.devices[device]);
    const auto program = graph.program_of(device);
    for (std::size_t k = 0; k < expected[rank].size(); ++k) {
      const std::size_t base = k / program.size() * graph.tasks();
      const double got = timeline.finish[base + program[k % program.size()]];
      worst = std::max(worst, std::abs(got - expected[rank][k]) / std::max(1.0, expected[rank][k]));
    }
  }
  return worst;
}

constexpr int kMostRanks = 5;
constexpr int kMostMicroBatches = 8;
constexpr int kMostChunks = 3;

// The numbers of ranks that a schedule can have, up to the most.
std::vector<int> ranks_of(const ScheduleRow& row) {
  std::vector<int> possible;
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    bool runs = false;
    for (int m = 1; m <= kMostMicroBatches; ++m) {
      for (int chunks = 1; chunks <= kMostChunks; ++chunks) {
        runs |= std::holds_alternative<Schedule>(test::schedule_of_shape(row, ranks, m, chunks_of(row, chunks)));
      }
    }
    if (runs) {
      possible.push_back(ranks);
    }
  }
  return possible;
}

bool has_fused_work(const Schedule& schedule) {
  return std::any_of(schedule.orders.begin(), schedule.orders.end(), [](const auto& order) {
    return std::any_of(order.begin(), order.end(), [](const Action& action) { return action.fused; });
  });
}

// No two flows meet on a link: a computation takes at least a second, and a transfer flows for less than a second from
// the end of its computation. Only fused work sends two things at once to the same rank: an activation from stage s and
// a gradient from stage S - 1 - s. One of the two then has no bytes, only its latency. Of two ranks with several stages
// each, in turn, any activation may meet any gradient, and none has bytes.
PipelineCase private_case(const ScheduleRow& row, int ranks, std::mt19937& random) {
  for (;;) {
    const int chunks = chunks_of(row, test::pick(random, 1, kMostChunks));
    const ScheduleResult& made = test::schedule_of_shape(row, ranks, test::pick(random, 1, kMostMicroBatches), chunks);
    if (!std::holds_alternative<Schedule>(made)) {
      continue;
    }
    PipelineCase one;
    one.schedule = std::get<Schedule>(made);
    one.iterations = test::pick(random, 1, 2);
    one.barrier = test::pick(random, 0, 1) == 1;
    one.pipeline.ranks = ranks;
    one.pipeline.stage_placement = row.stage_placement;
    one.pipeline.bandwidth = 100;
    one.pipeline.latency = 0.25;
    const bool fused = has_fused_work(one.schedule);
    const int stages = one.schedule.stages;
    const bool any_meet = fused && ranks == 2 && row.stage_placement == StagePlacement::interleaved && stages > 2;
    for (int s = 0; s < stages; ++s) {
      one.pipeline.stages.push_back({1 + test::pick_seconds(random), 1 + test::pick_seconds(random),
                                     1 + test::pick_seconds(random), test::pick_seconds(random)});
      const bool silent = fused && (any_meet || 2 * s >= stages - 2 || test::pick(random, 0, 1) == 0);
      one.pipeline.bytes.push_back(silent ? 0 : test::pick(random, 0, 99));
    }
    for (int s = 0; fused && !any_meet && 2 * s < stages - 2; ++s) {
      one.pipeline.bytes[stages - 2 - s] = one.pipeline.bytes[s] > 0 ? 0 : test::pick(random, 0, 99);
    }
    return one;
  }
}

TEST_CASE("on private links every engine equals the reference event loop, for every schedule",
          "[replay][conformance]") {
  constexpr int kCases = 1000; // of each schedule, over the numbers of ranks
  for (const ScheduleRow& row : schedules()) {
    const std::vector<int> possible = ranks_of(row);
    const int share = (kCases + static_cast<int>(possible.size()) - 1) / static_cast<int>(possible.size());
    for (const int ranks : possible) {
      std::mt19937 random(31 + ranks);
      const Platform platform = mesh_of(ranks, 100, 0.25);
      Router router(platform);
      std::vector<PipelineCase> cases;
      std::vector<TaskGraph> graphs;
      while (static_cast<int>(cases.size()) < share) {
        const PipelineCase one = private_case(row, ranks, random);
        const test::PlacedPipeline placed = test::placed(one.pipeline, one.schedule);
        graphs.push_back(make_task_graph({.cost = placed.cost,
                                          .schedule = one.schedule,
                                          .router = router,
                                          .barrier = one.barrier,
                                          .rank_of = placed.rank_of}));
        cases.push_back(one);
      }
      std::vector<ReplayRequest> requests;
      for (std::size_t i = 0; i < cases.size(); ++i) {
        requests.push_back({graphs[i], platform, cases[i].iterations});
      }
      for (const EngineRow& engine : kEngines) {
        const auto timelines = engine.replay(requests);
        REQUIRE(timelines.size() == cases.size());
        double worst = 0;
        for (std::size_t i = 0; i < cases.size(); ++i) {
          worst = std::max(worst, difference(cases[i], graphs[i], timelines[i]));
        }
        CAPTURE(row.name, engine.name, ranks);
        CHECK(worst < 1e-9);
      }
    }
  }
}

TEST_CASE("of two transfers on one channel the second arrives a wire time after the first", "[replay][order]") {
  // Both are ready at once: F of no time on the first stage, twice. Latency L, wire time w: the first flows from L to
  // L + w, the second has paid its latency meanwhile and flows until L + 2 w. Without an order both share the link.
  for (const double latency : {0.25, 3.0, 40.0}) {
    constexpr double kWire = 3;
    const test::Pipeline pipeline{{{0, 0, 0}, {1, 0, 0}}, 2, {30}, 10, latency};
    const Schedule schedule = test::schedule_of("gpipe", 2, 2);
    for (const EngineRow& engine : kEngines) {
      CAPTURE(engine.name, latency);
      const auto run = test::run(pipeline, schedule, {.ordered_sends = true, .engine = engine.replay});
      const double first = latency + kWire, second = latency + 2 * kWire;
      CHECK(run.finish(1, 0) == near(first + 1));
      CHECK(run.finish(1, 1) == near(second + 1));
      CHECK(test::sends(run, 0) == std::vector<std::pair<double, double>>{{0, first}, {kWire, second}});
    }
  }
}

TEST_CASE("a channel that has drained makes nothing wait", "[replay][order]") {
  // F takes 3 s and the wire 2: what is made at 3 and 6 arrives at 3 + L + 2 and 6 + L + 2 for any latency, though at
  // latencies beyond 1 s the first is under way when the second leaves.
  for (const double latency : {0.0, 0.5, 100.0}) {
    const test::Pipeline pipeline{{{3, 0, 0}, {1, 0, 0}}, 2, {20}, 10, latency};
    const Schedule schedule = test::schedule_of("gpipe", 2, 2);
    for (const EngineRow& engine : kEngines) {
      CAPTURE(engine.name, latency);
      const auto run = test::run(pipeline, schedule, {.ordered_sends = true, .engine = engine.replay});
      CHECK(test::sends(run, 0) == std::vector<std::pair<double, double>>{{3, 3 + latency + 2}, {6, 6 + latency + 2}});
    }
  }
}

TEST_CASE("an order of sends goes on from one iteration to the next", "[replay][order]") {
  // One stage sends 5 s of bytes for every second of computing; each B waits for its gradient, which takes as long.
  // F 0-1, there 1-6, F and B 6-7 and 7-8, back 8-13, B 13-14; the last stage ends at 8 and the next F of both comes
  // at 14. Sends of one channel never meet, so the second iteration is the first, 14 s later.
  const test::Pipeline pipeline{{{1, 1, 0}, {1, 1, 0}}, 2, {50}, 10, 0};
  for (const EngineRow& engine : kEngines) {
    const auto run = test::run(pipeline, test::schedule_of("gpipe", 2, 1),
                               {.iterations = 2, .ordered_sends = true, .engine = engine.replay});
    CAPTURE(engine.name);
    CHECK(run.end(0) == near(14));
    CHECK(run.end(1) == near(28));
  }
}

TEST_CASE("with ordered sends every engine equals the reference event loop, for every schedule",
          "[replay][conformance][order]") {
  // A link for each pair of ranks and direction carries one channel, so no two flows meet, however long they are.
  constexpr int kEach = 40;
  for (const ScheduleRow& row : schedules()) {
    for (const double longer : {1.0, 16.0}) { // latencies, from far less to far more than computations
      std::mt19937 random(17);
      std::vector<PipelineCase> cases;
      std::vector<Platform> platforms;
      std::vector<TaskGraph> graphs;
      platforms.reserve(kEach);
      while (static_cast<int>(cases.size()) < kEach) {
        PipelineCase one = test::random_case(row, random);
        one.pipeline.latency *= longer;
        const test::PlacedPipeline placed = test::placed(one.pipeline, one.schedule);
        const Platform& platform =
            platforms.emplace_back(mesh_of(one.pipeline.ranks, one.pipeline.bandwidth, one.pipeline.latency));
        Router router(platform);
        graphs.push_back(make_task_graph({.cost = placed.cost,
                                          .schedule = one.schedule,
                                          .router = router,
                                          .barrier = one.barrier,
                                          .rank_of = placed.rank_of}));
        order_transfers(graphs.back());
        cases.push_back(std::move(one));
      }
      std::vector<ReplayRequest> requests;
      for (std::size_t i = 0; i < cases.size(); ++i) {
        requests.push_back({graphs[i], platforms[i], cases[i].iterations});
      }
      for (const EngineRow& engine : kEngines) {
        const auto timelines = engine.replay(requests);
        double worst = 0;
        for (std::size_t i = 0; i < cases.size(); ++i) {
          worst = std::max(worst, difference(cases[i], graphs[i], timelines[i]));
        }
        CAPTURE(row.name, engine.name, longer);
        CHECK(worst < 1e-9);
      }
    }
  }
}

TEST_CASE("computations that take no time are replayed", "[replay]") {
  for (const auto& engine : kEngines) {
    const test::Pipeline pipeline{std::vector<test::StageTimes>(3, {0, 0, 0}), 3, {}, 1, 0.5};
    const test::PipelineRun run = test::run(pipeline, test::schedule_of("1f1b", 3, 2), {.engine = engine.replay});
    CHECK(run.end() >= 2); // there and back over two hops
    CHECK(run.finish(0, 2) == near(2));
  }
}

TEST_CASE("a ring all-reduce takes its closed form", "[replay][all-reduce]") {
  // 2 (r-1)/r * S/B + 2 (r-1) * latency; each rank sends on its own link and receives on another's.
  for (const EngineRow& engine : kEngines) {
    for (const int r : {2, 3, 4, 8}) {
      PlanCost cost;
      StageCost& stage = cost.stages.emplace_back();
      stage.gradients = Bytes{8400};
      for (DeviceId device = 0; device < r; ++device) {
        ReplicaCost replica;
        replica.device = device;
        replica.share = 1.0 / r;
        replica.forward = replica.backward_input = Seconds{1};
        stage.replicas.push_back(replica);
      }
      const Platform platform = make_star_platform({}, r, BytesPerSecond{100}, Seconds{0.125});
      Router router(platform);
      const Schedule schedule = test::schedule_of("accumulate", 1, 3);
      const TaskGraph graph = make_task_graph({.cost = cost, .schedule = schedule, .router = router});
      const ReplayRequest request{graph, platform};
      const Timeline timeline = engine.replay(std::span(&request, 1)).front();
      const double expected = 3 * 2 + 2.0 * (r - 1) / r * 8400 / 100 + 2 * (r - 1) * 0.125;
      CAPTURE(engine.name, r);
      CHECK(timeline.finish[graph.program_of(0).back()] == near(expected));
    }
  }
}

TEST_CASE("a micro-batch dealt out anew shares the links at both ends", "[replay][resharding]") {
  // Two replicas hold halves of 600 B, three want thirds, 10 B/s per device and direction: 0 sends 200 to 2 and 100 to
  // 3, 1 sends 100 to 3 and 200 to 4. Every link has two flows, so 5 B/s each: the 100s arrive 20 s after F's end at
  // 1, the 200s have 100 left then and 10 B/s: 30 s. F ends at 22 on device 3, 32 on 2 and 4; B at 23 and 33. Device 3
  // sends back 100 each to 0 and 1, 5 B/s, at 43; device 2's 200 to 0 get 5 B/s until then, 50 B, then 10: 58.
  PlanCost cost;
  for (const std::vector<DeviceId>& group : {std::vector<DeviceId>{0, 1}, {2, 3, 4}}) {
    StageCost& stage = cost.stages.emplace_back();
    for (const DeviceId device : group) {
      ReplicaCost replica;
      replica.device = device;
      replica.share = 1.0 / static_cast<double>(group.size());
      replica.forward = replica.backward_input = Seconds{1};
      stage.replicas.push_back(replica);
    }
  }
  cost.edges.push_back({0, 1, Bytes{600}});
  const Platform platform = make_star_platform({}, 5, BytesPerSecond{10}, Seconds{0});
  Router router(platform);
  const Schedule schedule = test::schedule_of("1f1b", 2, 1);
  const TaskGraph graph = make_task_graph({.cost = cost, .schedule = schedule, .router = router});
  const ReplayRequest request{graph, platform};
  const Timeline timeline = replay_simgrid(std::span(&request, 1)).front();
  const auto finish = [&](std::size_t device, std::size_t k) { return timeline.finish[graph.program_of(device)[k]]; };
  CHECK(finish(2, 0) == near(32));
  CHECK(finish(3, 0) == near(22));
  CHECK(finish(4, 0) == near(32));
  CHECK(finish(0, 1) == near(59));
  CHECK(finish(1, 1) == near(59));
}

TEST_CASE("a device that sends blocking computes nothing meanwhile", "[replay][blocking]") {
  // F = B = 1, hops of 2 s, two micro-batches. Free:    0: F0 0-1 F1 1-2 B0 7-8 B1 9-10   1: F0 3-4 B0 4-5 F1 5-6 B1
  // 6-7 Blocking: F1 waits for the send of F0 until 3.      0: F0 0-1 F1 3-4 B0 7-8 B1 11-12  1: F0 3-4 B0 4-5 F1 7-8
  // B1 8-9
  const test::Pipeline pipeline{{{1, 1, 0}, {1, 1, 0}}, 2, {}, 1, 2};
  for (const EngineRow& engine : kEngines) {
    const Schedule schedule = test::schedule_of("1f1b", 2, 2);
    CHECK(test::run(pipeline, schedule, {.engine = engine.replay}).end() == near(10));
    CHECK(test::run(pipeline, schedule, {.blocking_sends = true, .engine = engine.replay}).end() == near(12));
  }
}

TEST_CASE("a barrier makes every stage wait for the step, a local step does not", "[replay][steps]") {
  // F = B = 1 on two stages, one micro-batch, a step of 3 s on the second.
  // Barrier: gradients are complete at 4, steps end at 4 and 7; then F 4-5, F 7-8, B 8-9, B 9-10, step until 13.
  // Local: F 0-1, F 1-2, B 2-3, step 3-6, B 3-4; then F 4-5, F 6-7, B 7-8, step 8-11.
  const test::Pipeline pipeline{{{1, 1, 0, 0}, {1, 1, 0, 3}}, 2, {}, 1, 0};
  for (const EngineRow& engine : kEngines) {
    const Schedule schedule = test::schedule_of("1f1b", 2, 1);
    const auto barrier = test::run(pipeline, schedule, {.iterations = 3, .engine = engine.replay});
    CHECK(barrier.end(0) == near(7));
    CHECK(barrier.end(1) == near(13));
    CHECK(barrier.end(2) == near(19));
    const auto local = test::run(pipeline, schedule, {.iterations = 3, .barrier = false, .engine = engine.replay});
    CHECK(local.end(0) == near(6));
    CHECK(local.end(1) == near(11));
    CHECK(local.end(2) == near(16));
  }
}

TEST_CASE("many graphs of one batch come out as each alone", "[replay][batch]") {
  std::mt19937 random(41);
  const Platform platform = mesh_of(3, 10, 0.125);
  Router router(platform);
  std::vector<TaskGraph> graphs;
  for (int n = 0; n < 450; ++n) { // more than one worker process
    const test::Pipeline pipeline{{{test::pick_seconds(random), test::pick_seconds(random), 1},
                                   {test::pick_seconds(random), test::pick_seconds(random), 1},
                                   {test::pick_seconds(random), test::pick_seconds(random), 1}},
                                  3,
                                  {static_cast<double>(test::pick(random, 0, 99)), 20}};
    const PlanCost cost = test::cost_of(pipeline);
    const Schedule schedule = test::schedule_of("1f1b", 3, test::pick(random, 1, 6));
    graphs.push_back(make_task_graph({.cost = cost, .schedule = schedule, .router = router}));
  }
  std::vector<ReplayRequest> requests;
  for (const TaskGraph& graph : graphs) {
    requests.push_back({graph, platform, 2});
  }
  for (const EngineRow& engine : kEngines) {
    const auto together = engine.replay(requests);
    REQUIRE(together.size() == requests.size());
    const auto again = engine.replay(requests);
    const auto is_same = [](const Timeline& one, const Timeline& other) { // bit for bit
      return one.start == other.start && one.finish == other.finish;
    };
    for (std::size_t i = 0; i < requests.size(); ++i) {
      CHECK(is_same(together[i], again[i]));
      if (i % 50 == 49) {
        CHECK(is_same(together[i], engine.replay(std::span(&requests[i], 1)).front()));
      }
    }
  }
}

TEST_CASE("no requests, no timelines", "[replay][batch]") {
  for (const EngineRow& engine : kEngines) {
    CHECK(engine.replay({}).empty());
  }
}

TEST_CASE("several platforms are replayed by one process", "[replay][batch]") {
  for (int round = 0; round < 3; ++round) {
    CHECK(test::arrivals({10}, {{100, {{0}}}}).front() == near(10));
    CHECK(test::arrivals({10, 40}, {{100, {{1}}}}).front() == near(2.5));
  }
}

TEST_CASE("tasks that wait for each other end as an error, not a hang", "[replay][errors]") {
  // Two devices, each waiting for the other's only task.
  TaskGraph graph;
  graph.works = {{.device = 0, .seconds = Seconds{1}}, {.device = 1, .seconds = Seconds{1}}};
  graph.work = {0, 1};
  graph.micro_batch = {0, 0};
  graph.waits = {1, 1};
  graph.successor_begin = {0, 1, 2};
  graph.successors = {1, 0};
  graph.devices = {0, 1};
  graph.program_begin = {0, 1, 2};
  graph.program = {0, 1};
  graph.fixed_memory.resize(2);
  const Platform platform = mesh_of(2, 1, 0);
  const ReplayRequest request{graph, platform};
  for (const EngineRow& engine : kEngines) {
    CHECK_THROWS_WITH(engine.replay(std::span(&request, 1)), Catch::Contains("waiting for each other"));
  }
}

} // namespace
} // namespace stagecraft
