// Runs whose equal replicas share a port: every figure is of the same draw, and the result says so.
// SPDX-License-Identifier: Apache-2.0
#include "sim/analysis/explain.hpp"
#include "sim/base/improves.hpp"
#include "sim/replay/what_if/lockstep.hpp"
#include "sim/study/compare/replay_prepared.hpp"
#include "sim/study/measure/measure_graph.hpp"
#include "sim/study/measure/race.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

using Catch::Matchers::Contains;

// The chain on two servers of two devices each. A micro-batch of two samples has 4 MB for each of two replicas, which
// take a second through a server's port.
Study two_servers(const std::string& engine = "simgrid", const std::string& seed = "1",
                  const std::string& bandwidth = "4 MB/s", const std::string& schedule = "naive") {
  return study(chain_study("training: {global_batch: 16, micro_batches: 8}\n"
                           "compare: {strategies: [uniform], schedules: [" +
                               schedule + "]}\nseed: " + seed + "\nengine: " + engine + "\n",
                           "two-nodes.yaml"),
               {{"platform.network.bandwidth", bandwidth}, {"platform.network.latency", "0 s"}});
}

// Two stages of two replicas each; devices 0 and 1 are one server.
Plan plan_on(const std::vector<DeviceId>& first, const std::vector<DeviceId>& second) {
  Plan plan{.strategy = "given"};
  plan.stages.push_back({.operators = {0, 1}, .devices = first, .shares = {0.5, 0.5}});
  plan.stages.push_back({.operators = {2, 3}, .devices = second, .shares = {0.5, 0.5}});
  return plan;
}

const Plan kThroughPort = plan_on({0, 1}, {2, 3}), kWithinServers = plan_on({0, 2}, {1, 3});

Prepared run_of(const Study& read, const Plan& plan) {
  ScheduleCounts counts;
  StudyMemo memo(read, counts);
  return run_scenario(memo, {.plan = &plan, .schedule = read.schedules.front().row, .micro_batches = 8});
}

TEST_CASE("a run whose equal replicas share a port is a draw in which they have drifted apart", "[study][lockstep]") {
  const Study read = two_servers();
  const Prepared one = run_of(read, kThroughPort);
  REQUIRE(one.run.feasible);
  CHECK(one.run.note == "equal replicas share links: this is the median of 5 draws with computations 3 % apart");
  // A micro-batch computes 2 s forward and 4 s backward on each stage; 8 MB cross the port at 4 MB/s each way in
  // lockstep, 4 MB for itself.
  constexpr double kLockstep = 8 * (2 + 2 + 6 + 2 + 4), kAlone = 8 * (2 + 1 + 6 + 1 + 4);
  CHECK(one.run.metrics.iteration.value < kLockstep - 0.1);
  CHECK(one.run.metrics.iteration.value > kAlone);
  for (const Seconds busy : one.run.metrics.busy) {
    CHECK(busy.value == Catch::Detail::Approx(8 * 6).epsilon(1e-6)); // as without a draw; optimiser steps beside
  }
  const ReplayRequest exact{*one.graph, read.platform};
  CHECK(replay_simgrid({&exact, 1}).front().end() == Catch::Detail::Approx(kLockstep).epsilon(1e-3));
}

TEST_CASE("no draw is made where no port is shared, or by an engine that shares none", "[study][lockstep]") {
  const Prepared within = run_of(two_servers(), kWithinServers);
  CHECK(within.drift == -1);
  CHECK(within.run.note.empty());
  const Prepared analytic = run_of(two_servers("analytic"), kThroughPort);
  CHECK(analytic.drift == -1);
  CHECK(analytic.run.note.empty());
  CHECK(analytic.run.metrics.iteration.value == Catch::Detail::Approx(8 * (2 + 1 + 6 + 1 + 4)).epsilon(1e-3));
}

TEST_CASE("a drifted run is the same for the same seed and wherever it is measured", "[study][lockstep]") {
  const Study read = two_servers();
  const Prepared one = run_of(read, kThroughPort);
  CHECK(run_of(read, kThroughPort).timeline.finish == one.timeline.finish);
  CHECK(run_of(two_servers("simgrid", "2"), kThroughPort).timeline.finish != one.timeline.finish);
  const double iteration = one.run.metrics.iteration.value;
  CHECK(measure_graph(read, read.platform, *one.graph, replay_simgrid).iteration.value == iteration);
  const TaskGraph graph = replayed_graph(read, one);
  const ReplayRequest again{graph, read.platform};
  CHECK(replay_simgrid({&again, 1}).front().finish == one.timeline.finish);
  CHECK(explain({graph, one.timeline, read.platform, replay_simgrid}).iteration.value == iteration);

  Study beside = two_servers(); // in a comparison, after another run
  beside.plans = {kWithinServers, kThroughPort};
  beside.plans[0].strategy = "within", beside.plans[1].strategy = "through";
  ScheduleCounts counts;
  StudyMemo memo(beside, counts);
  const ComparisonResult result = compare(memo);
  const Run& compared = find_run(result.comparison, "through", "naive", 8);
  CHECK(compared.metrics.iteration.value == iteration);
  CHECK_THAT(compared.note, Contains("equal replicas share links"));
}

std::size_t replayed = 0;

std::vector<Timeline> replay_counted(std::span<const ReplayRequest> requests) {
  replayed += requests.size();
  return replay_simgrid(requests);
}

TEST_CASE("the draw that counts is the median of all, and draws that surely gain nothing are not replayed",
          "[study][lockstep]") {
  const auto [schedule, bandwidth, needed] = GENERATE(table<std::string, std::string, std::size_t>({
      {"naive", "4 MB/s", 5}, // replicas wait for the port only, so every draw gains
      {"1f1b", "60 MB/s", 4}, // one draw takes longer without the port already
      {"1f1b", "4 GB/s", 0},  // uneven computations take longer even where each transfer has the port for itself
  }));
  INFO(schedule << " " << bandwidth);
  const Study read = two_servers("simgrid", "1", bandwidth, schedule);
  const Prepared one = run_of(read, kThroughPort);
  const ReplayRequest exact{*one.graph, read.platform};
  std::vector<Timeline> timelines = replay_simgrid({&exact, 1});
  const Timeline before = timelines.front();
  std::vector<double> seconds;
  for (int draw = 0; draw < kDriftDraws; ++draw) {
    const TaskGraph drawn = drifted(*one.graph, read.seed, draw);
    const ReplayRequest request{drawn, read.platform};
    seconds.push_back(replay_simgrid({&request, 1}).front().end());
  }
  const int median = median_index(seconds);
  const bool counts = gains(seconds[median], before.end());
  double spread = 0;
  replayed = 0;
  const std::vector<int> drawn = let_drift(read, replay_counted, {&exact, 1}, timelines, {&spread, 1});
  CHECK(drawn == std::vector{counts ? median : -1});
  CHECK(timelines.front().end() == (counts ? seconds[median] : before.end()));
  CHECK(replayed == needed);
}

TEST_CASE("what is surely slower than an earlier graph is not replayed", "[study][lockstep]") {
  const Study read = two_servers();
  const Prepared through = run_of(read, kThroughPort), within = run_of(read, kWithinServers);
  Race fastest_first(read);
  CHECK(fastest_first.seconds_of(*within.graph) == within.run.metrics.iteration.value);
  // Through the port a micro-batch has two transfers of a second more, whoever else sends.
  CHECK(fastest_first.seconds_of(*through.graph) == kInfinity);
  CHECK(fastest_first.seconds_of(*within.graph) == within.run.metrics.iteration.value);
  Race fastest_last(read);
  CHECK(fastest_last.seconds_of(*through.graph) == through.run.metrics.iteration.value); // of a draw
  CHECK(fastest_last.seconds_of(*through.graph) == through.run.metrics.iteration.value); // a draw may gain again
  CHECK(fastest_last.seconds_of(*within.graph) == within.run.metrics.iteration.value);
}

} // namespace
} // namespace stagecraft::test
