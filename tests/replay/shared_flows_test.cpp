// Flows are handed over to SimGrid where they meet on a full link, and only there: an independent max-min simulation,
// and SimGrid with every transfer and computation, agree with that; and so does the engine that shares without SimGrid.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <random>

#include "sim/replay/binding_links.hpp"
#include "sim/replay/clock_start.hpp"
#include "sim/replay/max_min_run.hpp"
#include "sim/replay/replay_apart.hpp"
#include "sim/schedule/task_graph/order_transfers.hpp"
#include "tests/catch.hpp"
#include "tests/replay/flows.hpp"
#include "tests/schedule/random_pipelines.hpp"

namespace stagecraft {
namespace {

using test::near;

bool apart(const std::vector<double>& bandwidths, const std::vector<test::Flow>& flows) {
  const Platform platform = test::links_of(bandwidths);
  const TaskGraph graph = test::graph_of(platform, flows);
  return replay_apart({graph, platform}).has_value();
}

TEST_CASE("flows share only if a link cannot carry them at once", "[replay][sharing]") {
  const test::Flow first{100, {{0}}};
  CHECK(apart({10}, {first}));
  CHECK_FALSE(apart({10}, {first, first}));
  // From 0 to 10 s and from 10 s on: back to back. A moment earlier they meet.
  CHECK(apart({10}, {first, {100, {{0}}, 10}}));
  CHECK_FALSE(apart({10}, {first, {100, {{0}}, 9.999}}));
  // Links 1 and 2 leave each flow 5 B/s, so link 0 carries two of them; a third one is too much.
  const std::vector<test::Flow> three = {{100, {{0, 1}}}, {100, {{0, 2}}}, {100, {{0, 3}}}};
  CHECK(apart({10, 5, 5, 5}, {three[0], three[1]}));
  CHECK_FALSE(apart({10, 5, 5, 5}, three));
  CHECK(apart({15, 5, 5, 5}, three));
  // No bytes, no flow; a latency is none either.
  CHECK(apart({10}, {first, {0, {{0}}}, {100, {{0}}, 0, 10}}));
}

// Two flows from machine a over its own links 0 and 1 and its NIC 2, one from machine b over 3 and its NIC 4, to a
// common sink 5.
TEST_CASE("a link that is full only where another is does not bind", "[replay][sharing]") {
  const auto binding = [](const std::vector<double>& bandwidths, std::vector<std::vector<LinkId>> ways) {
    const Platform platform = test::links_of(bandwidths);
    std::vector<test::Flow> flows;
    for (const std::vector<LinkId>& way : ways) {
      flows.push_back({100, {way}});
    }
    return binding_links(test::graph_of(platform, flows), platform);
  };
  using Ways = std::vector<std::vector<LinkId>>;
  const Ways ways = {{0, 2, 5}, {1, 2, 5}, {3, 4, 5}};
  // All wider than the sink: only it is ever full.
  CHECK(binding({20, 20, 15, 20, 15, 10}, ways) == Ways{{5}, {5}, {5}});
  // The sink is wide, so each NIC binds what crosses it; as wide as it, b's link would be full at the same moment.
  CHECK(binding({20, 20, 15, 15, 15, 40}, ways) == Ways{{2, 5}, {2, 5}, {3, 5}});
  // a's links are narrower than its NIC, which yet both can fill together.
  CHECK(binding({10, 10, 15, 20, 15, 40}, ways) == Ways{{0, 2, 5}, {1, 2, 5}, {4, 5}});
  // A third way leaves the NIC out, so that a's first link may be full alone.
  CHECK(binding({20, 20, 15, 20, 15, 40}, {{0, 2}, {0}, {1, 2}}) == Ways{{0, 2}, {0}, {2}});
  // What is crossed twice is full at half its width; without a limit, nothing is.
  CHECK(binding({12, 20, 10}, {{0, 1, 1}, {2, 1, 1}}) == Ways{{0, 1, 1}, {2, 1, 1}});
  CHECK(binding({12, 20, 10}, {{0, 1}, {2, 1}}) == Ways{{0, 1}, {2, 1}});
  CHECK(binding({12, 10, 10}, {{0, 1, 1}, {2, 1, 1}}) == Ways{{1, 1}, {1, 1}});
  CHECK(binding({12, 20, 10}, {{0, 0, 1}}) == Ways{{0, 0}});
  CHECK(binding({10, 12}, {{0, 1, 1}}) == Ways{{0, 1, 1}});
  CHECK(binding({test::kInfinite, 10}, {{0, 1}, {0}}) == Ways{{1}, {}});
}

TEST_CASE("a flow that meets another in the middle of a byte keeps what is left of it", "[replay][sharing]") {
  // 3 B/s alone until 1/7 s, then half of it: 100 - 3/7 B are left of the first. When it has ended, the second one has
  // 3/7 B left and all of the link: as much as both together need.
  const double first = 1.0 / 7 + (100 - 3.0 / 7) / 1.5;
  const std::vector<double> ends = test::arrivals({3}, {{100, {{0}}}, {100, {{0}}, 1.0 / 7}});
  CHECK(std::abs(ends[0] - first) < 1e-12 * first);
  CHECK(std::abs(ends[1] - 200.0 / 3) < 1e-12 * 200 / 3);
}

// When flows end that start at given times: rates are filled up link by link whenever one starts or ends.
std::vector<double> filled(const std::vector<double>& bandwidths, const std::vector<test::Flow>& flows) {
  constexpr double kDone = 1e-12;
  std::vector<double> left, ends(flows.size(), 0.0);
  for (const test::Flow& flow : flows) {
    left.push_back(flow.bytes);
  }
  const auto live = [&](std::size_t f, double now) { return left[f] > 0 && flows[f].start <= now; };
  for (double now = 0; std::any_of(left.begin(), left.end(), [](double bytes) { return bytes > 0; });) {
    std::vector<double> rate(flows.size(), -1), room = bandwidths;
    for (;;) { // the link that leaves its flows least is full; they have their rates
      double least = test::kInfinite;
      std::size_t full = 0;
      for (std::size_t link = 0; link < room.size(); ++link) {
        int open = 0;
        for (std::size_t f = 0; f < flows.size(); ++f) {
          const auto& links = flows[f].legs[0];
          open += live(f, now) && rate[f] < 0 ? static_cast<int>(std::count(links.begin(), links.end(), link)) : 0;
        }
        if (open > 0 && room[link] / open < least) {
          least = room[link] / open;
          full = link;
        }
      }
      if (least == test::kInfinite) {
        break;
      }
      for (std::size_t f = 0; f < flows.size(); ++f) {
        const auto& links = flows[f].legs[0];
        if (live(f, now) && rate[f] < 0 && std::find(links.begin(), links.end(), full) != links.end()) {
          rate[f] = least;
          for (const LinkId link : links) {
            room[link] -= least;
          }
        }
      }
    }
    double next = test::kInfinite;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      next = std::min(next, live(f, now) ? now + left[f] / rate[f] : left[f] > 0 ? flows[f].start : next);
    }
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (live(f, now)) {
        left[f] -= rate[f] * (next - now);
        if (left[f] < kDone * flows[f].bytes) {
          left[f] = 0;
          ends[f] = next;
        }
      }
    }
    now = next;
  }
  return ends;
}

TEST_CASE("flows that meet without SimGrid rise together until a link is full or their leg is", "[replay][sharing]") {
  // Link 0 carries 10 B/s, link 1 only 2. The flow over both gets 2, which leaves 4 each to the other two: a third of
  // link 0 would be 3 1/3. From 20 s on, when those two have their 80 B, it still has 2, and ends at 50 s.
  const std::vector<double> narrow =
      test::arrivals({10, 2}, {{80, {{0}}}, {80, {{0}}}, {100, {{0, 1}}}}, replay_max_min);
  CHECK(narrow == std::vector<double>{20, 20, 50});
  // A flow that crosses link 0 twice and one that crosses it once rise to 10 / 3 B/s; the first leg alone carries 5. At
  // 30 s the second has its 100 B, and the first 50 of its 150 B left, which take 10 s.
  const std::vector<double> twice = test::arrivals({10}, {{150, {{0, 0}}}, {100, {{0}}}}, replay_max_min);
  CHECK(twice[0] == near(40));
  CHECK(twice[1] == near(30));
}

TEST_CASE("random flows over random links end as max-min sharing says", "[replay][sharing]") {
  constexpr int kCases = 300, kMostFlows = 8, kLinks = 4;
  std::mt19937 random(5);
  int shared = 0;
  for (int one = 0; one < kCases; ++one) {
    std::vector<double> bandwidths;
    for (int link = 0; link < kLinks; ++link) {
      bandwidths.push_back(test::pick(random, 1, 40));
    }
    std::vector<test::Flow> flows;
    for (int f = test::pick(random, 1, kMostFlows); f > 0; --f) {
      std::vector<LinkId> links;
      for (LinkId link = 0; link < kLinks; ++link) {
        if (test::pick(random, 0, 2) == 0) {
          links.push_back(link);
        }
      }
      links = links.empty() ? std::vector<LinkId>{0} : links;
      flows.push_back({static_cast<double>(test::pick(random, 1, 1000)), {links}, test::pick_seconds(random)});
    }
    const std::vector<double> expected = filled(bandwidths, flows), got = test::arrivals(bandwidths, flows);
    const std::vector<double> without_simgrid = test::arrivals(bandwidths, flows, replay_max_min);
    shared += apart(bandwidths, flows) ? 0 : 1;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      CAPTURE(one, f);
      CHECK(got[f] == near(expected[f]));
      CHECK(without_simgrid[f] == got[f]); // to the last bit
    }
  }
  CHECK(shared > kCases / 4); // both ways are taken often
  CHECK(shared < kCases);
}

// Coupled flows cross links several times, some at once, and each case starts the clock anew.
TEST_CASE("random coupled flows end without SimGrid when they end on it, to the last bit", "[replay][sharing]") {
  constexpr int kCases = 200, kMostFlows = 24, kLinks = 6;
  std::mt19937 random(11);
  for (int one = 0; one < kCases; ++one) {
    std::vector<double> bandwidths;
    for (int link = 0; link < kLinks; ++link) {
      bandwidths.push_back(1e9 / test::pick(random, 1, 7));
    }
    std::vector<test::Flow> flows;
    for (int f = test::pick(random, 2, kMostFlows); f > 0; --f) {
      std::vector<LinkId> links;
      for (LinkId link = 0; link < kLinks; ++link) {
        links.insert(links.end(), static_cast<std::size_t>(std::max(0, test::pick(random, -3, 3))), link);
      }
      links = links.empty() ? std::vector<LinkId>{0} : links;
      flows.push_back({1e7 * test::pick_seconds(random), {links}, 1e-3 * test::pick(random, 0, 9), 1e-6});
    }
    CAPTURE(one);
    CHECK(test::arrivals(bandwidths, flows, replay_max_min) == test::arrivals(bandwidths, flows));
  }
}

TEST_CASE("only what meets goes to SimGrid, and all times are those of SimGrid with everything",
          "[replay][sharing][conformance]") {
  // In a star the way out of a device carries activations one way and gradients the other, and so does the way in.
  constexpr int kEach = 24;
  for (const ScheduleRow& row : schedules()) {
    std::mt19937 random(7);
    std::vector<Platform> platforms;
    std::vector<TaskGraph> graphs;
    std::vector<int> iterations;
    platforms.reserve(kEach);
    for (int number = 0; number < kEach; ++number) {
      const test::RandomCase one = test::random_case(row, random);
      const test::PlacedPipeline placed = test::placed(one.pipeline, one.schedule);
      const Platform& platform = platforms.emplace_back(make_star_platform(
          {}, one.pipeline.ranks, BytesPerSecond{one.pipeline.bandwidth}, Seconds{one.pipeline.latency}));
      Router router(platform);
      graphs.push_back(make_task_graph({.cost = placed.cost,
                                        .schedule = one.schedule,
                                        .router = router,
                                        .barrier = one.barrier,
                                        .rank_of = placed.rank_of}));
      if (number % 2 == 0) {
        order_transfers(graphs.back());
      }
      iterations.push_back(one.iterations);
    }
    std::vector<ReplayRequest> requests;
    for (std::size_t i = 0; i < graphs.size(); ++i) {
      requests.push_back({graphs[i], platforms[i], iterations[i]});
    }
    const std::vector<Timeline> expected = replay_simgrid_full(requests);
    const std::vector<Timeline> got = replay_simgrid(requests), without_simgrid = replay_max_min(requests);
    for (std::size_t i = 0; i < graphs.size(); ++i) {
      double worst = 0;
      for (std::size_t at = 0; at < got[i].finish.size(); ++at) {
        worst = std::max({worst, std::abs(got[i].start[at] - expected[i].start[at]),
                          std::abs(got[i].finish[at] - expected[i].finish[at])});
      }
      CAPTURE(row.name, i);
      CHECK(worst <= 1e-9 * expected[i].end());
      // To the last bit those of SimGrid that has replayed nothing before: what it has may move half a bit.
      const Timeline alone = replay_simgrid({&requests[i], 1}).front();
      CHECK(without_simgrid[i].start == alone.start);
      CHECK(without_simgrid[i].finish == alone.finish);
      // Both go on where flows first met; so does it come from the start.
      const Timeline from_start = MaxMinRun(requests[i], clock_start(requests[i])).take();
      CHECK(from_start.start == alone.start);
      CHECK(from_start.finish == alone.finish);
    }
  }
}

} // namespace
} // namespace stagecraft
