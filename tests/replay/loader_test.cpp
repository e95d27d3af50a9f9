// Batches loaded ahead of training: worked numbers, the steady period, laws.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <random>

#include "sim/replay/engines.hpp"
#include "sim/timeline/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/schedule/pipelines.hpp"

namespace stagecraft {
namespace {

using test::near;

struct Feed {
  int workers = 1, queue = 1;
  double load = 1, step = 1; // seconds of a batch on a core, and on the device
  double read = 0, disk = 1; // bytes of a batch, and of the disk in a second
  double copied = 0;         // bytes over a link of 1 B/s
};

// One device, or several that share a disk, fed from one host; links private to each device, then the disk.
struct Fed {
  Platform platform;
  TaskGraph graph;

  Fed(const Feed& feed, int micro_batches, int devices = 1) {
    platform = make_star_platform({}, devices, BytesPerSecond{1}, Seconds{0});
    platform.nodes[0].disk = static_cast<LinkId>(platform.links.size());
    platform.links.push_back({"disk", 0, 0, BytesPerSecond{feed.disk}, Seconds{0}});
    Loading loading{.workers = feed.workers, .queue = feed.queue};
    PlanCost cost;
    StageCost& stage = cost.stages.emplace_back();
    for (int d = 0; d < devices; ++d) {
      ReplicaCost replica;
      replica.device = d;
      replica.share = 1.0 / devices;
      replica.forward = Seconds{feed.step};
      stage.replicas.push_back(replica);
      const LinkId link = 2 * d + 1; // switch to device
      loading.replicas.push_back({.node = 0,
                                  .disk = {{platform.nodes[0].disk}, {}, BytesPerSecond{feed.disk}},
                                  .read = Bytes{feed.read},
                                  .decode = Seconds{feed.load},
                                  .copy = {{link}, {}, BytesPerSecond{1}},
                                  .copied = Bytes{feed.copied}});
    }
    Router router(platform);
    const Schedule schedule = test::schedule_of("accumulate", 1, micro_batches);
    graph = make_task_graph({.cost = cost, .schedule = schedule, .router = router, .loading = &loading});
  }

  Timeline run(const EngineRow& engine, int iterations) const {
    const ReplayRequest request{graph, platform, iterations};
    return engine.replay({&request, 1}).front();
  }
};

double end_of(const Timeline& timeline) { return *std::max_element(timeline.finish.begin(), timeline.finish.end()); }

// What the paper's pipeline does, evaluated batch by batch: claim = max(worker free, batch n - queue taken), ready =
// claim + load, start = max(the device free, ready + copy).
double recurrence(const Feed& feed, int batches) {
  std::vector<double> start, ready;
  double end = 0;
  for (int n = 0; n < batches; ++n) {
    const double worker = n >= feed.workers ? ready[n - feed.workers] : 0;
    const double claim = std::max(worker, n >= feed.queue ? start[n - feed.queue] : 0);
    ready.push_back(claim + feed.read / feed.disk + feed.load);
    start.push_back(std::max(end, ready.back() + feed.copied));
    end = start.back() + feed.step;
  }
  return end;
}

TEST_CASE("ten batches end when they should, as iterations and as micro-batches", "[replay][loader]") {
  const std::vector<std::pair<Feed, double>> worked = {
      {{2, 4, 6, 4}, 46},  // the device decides: 6 + 10 * 4
      {{2, 4, 12, 4}, 68}, // the loader decides: two batches every 12 s
      {{1, 1, 6, 4}, 64},  // one worker, one place: 10 * 6 + 4
      {{4, 4, 12, 4}, 52}, // four workers: 12 + 10 * 4
  };
  for (const EngineRow& engine : kEngines) {
    for (const auto& [feed, expected] : worked) {
      CAPTURE(engine.name, feed.workers, feed.load, feed.queue);
      CHECK(recurrence(feed, 10) == near(expected));
      CHECK(end_of(Fed(feed, 1).run(engine, 10)) == near(expected));
      CHECK(end_of(Fed(feed, 10).run(engine, 1)) == near(expected));
      CHECK(end_of(Fed(feed, 2).run(engine, 5)) == near(expected));
      CHECK(end_of(Fed(feed, 5).run(engine, 2)) == near(expected));
    }
  }
}

TEST_CASE("one worker, one place and nothing ahead is ten loads and ten steps", "[replay][loader]") {
  // With a queue of one a batch is loaded while the device trains on the one before. Were loading to wait for the step
  // too, ten batches would take 10 * (6 + 4) s.
  CHECK(recurrence({1, 1, 6, 4}, 10) == near(64));
  CHECK(recurrence({1, 1, 4, 6}, 10) == near(4 + 10 * 6));
}

TEST_CASE("every engine follows the recurrence, whatever the numbers", "[replay][loader]") {
  std::mt19937 random(7);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<>(low, high)(random); };
  for (int n = 0; n < 200; ++n) {
    const Feed feed{.workers = pick(1, 5),
                    .queue = pick(1, 7),
                    .load = 1.0 * pick(0, 12),
                    .step = 1.0 * pick(1, 6),
                    .copied = 1.0 * pick(0, 1)};
    const int micro_batches = pick(1, 5);
    const int iterations = pick(1, 6);
    CAPTURE(n, feed.workers, feed.queue, feed.load, feed.step, feed.copied, micro_batches, iterations);
    for (const EngineRow& engine : kEngines) {
      if (feed.copied == 0 || engine.name == "analytic") { // elsewhere copies share their link
        CHECK(end_of(Fed(feed, micro_batches).run(engine, iterations)) ==
              near(recurrence(feed, micro_batches * iterations)));
      }
    }
  }
}

double period(const Feed& feed, int devices = 1) {
  const Fed fed(feed, 1, devices);
  Timeline timeline = fed.run(kEngines[0], 60);
  timeline.window = 12; // whole cycles of up to four workers
  return measure(fed.graph, timeline, fed.platform).iteration.value;
}

TEST_CASE("the steady period is the slowest of step, loading and disk", "[replay][loader]") {
  CHECK(period({2, 4, 6, 4}) == near(4));           // step
  CHECK(period({2, 4, 12, 4}) == near(6));          // 12 / min(2, 4)
  CHECK(period({4, 2, 12, 4}) == near(6));          // 12 / min(4, 2): the queue keeps two workers idle
  CHECK(period({3, 4, 12, 4}) == near(4));          // 12 / 3 is just enough
  CHECK(period({4, 8, 0, 2, 10, 1}) == near(10));   // the disk: 10 B at 1 B/s, whoever asks
  CHECK(period({4, 8, 4, 2, 10, 10}) == near(2));   // ten times the disk: 1 + 4 s on four workers
  CHECK(period({2, 4, 0, 1, 3, 1}, 4) == near(12)); // four devices read 3 B each
  // Workers that read together decode together, and the disk then stands still: 4 s for every four batches.
  CHECK(period({4, 8, 4, 2, 10, 1}) == near(10 + 1));
}

TEST_CASE("waiting for the loader is a stall, not exposed communication", "[replay][loader]") {
  // Steps of 4 s every 6 s, the last of them a copy of 1 s.
  const Fed fed({.workers = 1, .queue = 1, .load = 6, .step = 4, .copied = 1}, 1);
  Timeline timeline = fed.run(kEngines[1], 20);
  timeline.window = 4;
  const Metrics metrics = measure(fed.graph, timeline, fed.platform);
  CHECK(metrics.iteration.value == near(7)); // with one place the copy delays the next load, too
  CHECK(metrics.busy[0].value == near(4));
  CHECK(metrics.stall[0].value == near(3));
  CHECK(metrics.exposed[0].value == near(0));
}

TEST_CASE("host cores draw power as they load, spin or sleep", "[replay][loader][energy]") {
  // Two workers load 12 s each per 12 s and batch pair: an iteration of 6 s, 12 core seconds busy of 12. The driver of
  // the device waits the whole iteration.
  for (const HostWait wait : {HostWait::spin, HostWait::block}) {
    Fed fed({2, 4, 8, 6}, 1); // the device decides: 6 s, and workers wait for 12 - 8 = 4 core seconds
    fed.graph.host = wait;
    fed.platform.nodes[0].host.core_busy = Watts{10};
    fed.platform.nodes[0].host.core_spin = Watts{3};
    Timeline timeline = fed.run(kEngines[1], 20);
    timeline.window = 4;
    const Energy energy = measure(fed.graph, timeline, fed.platform).energy;
    CHECK(energy.loaders_busy.value == near(8 * 10));
    CHECK(energy.loaders_waiting.value == near(wait == HostWait::spin ? 4 * 3 : 0));
    CHECK(energy.drivers_waiting.value == near(wait == HostWait::spin ? 6 * 3 : 0));
    CHECK(energy.hosts_dynamic.value == near(wait == HostWait::spin ? 110 : 80));
  }
}

TEST_CASE("as many workers as balance host and device", "[replay][loader]") {
  // k workers deliver a batch every load/k; host and device balance where that is 0.95 steps.
  CHECK(balanced_workers(Seconds{0}, Seconds{4}, 8) == 1);
  CHECK(balanced_workers(Seconds{3.8}, Seconds{4}, 8) == 1);
  CHECK(balanced_workers(Seconds{3.9}, Seconds{4}, 8) == 2);
  CHECK(balanced_workers(Seconds{12}, Seconds{4}, 8) == 4); // 12 / 3 = 4 > 3.8
  CHECK(balanced_workers(Seconds{100}, Seconds{4}, 8) == 8);
  CHECK(balanced_workers(Seconds{1}, Seconds{0}, 8) == 8);
}

} // namespace
} // namespace stagecraft
