// Pipelines without a flush: PipeDream, PipeDream-2BW, PipeMare and XPipe.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>
#include <random>

#include "tests/schedule/random_pipelines.hpp"
#include "tests/schedule/worked_examples.hpp"

namespace stagecraft {
namespace {

using test::near;

const std::vector<std::string> kNames = {"pipedream", "pipedream-2bw", "pipemare", "xpipe"};

Schedule replicated(const std::vector<int>& replicas, int micro_batches) {
  ScheduleRequest request{.micro_batches = micro_batches, .replicas = replicas};
  request.ranks = std::accumulate(replicas.begin(), replicas.end(), 0);
  return std::get<Schedule>(make_schedule(test::schedule_row("pipedream"), request));
}

TEST_CASE("a rank's order is one round of the steady state", "[schedule][asynchronous]") {
  const Schedule schedule = test::schedule_of("pipedream", 4, 2);
  const char* const expected[] = {"F3@0 B0@0 F4@0 B1@0", "F2@1 B0@1 F3@1 B1@1", "F1@2 B0@2 F2@2 B1@2",
                                  "F0@3 B0@3 F1@3 B1@3"};
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(to_text(schedule.orders[rank]) == expected[rank]);
  }
  CHECK(!schedule.flushes);
}

TEST_CASE("one iteration from empty is 1f1b", "[schedule][asynchronous]") {
  for (const std::string& name : kNames) {
    for (int p = 1; p <= 8; ++p) {
      for (int m = name == "pipedream-2bw" ? p : 1; m <= 12; ++m) {
        CHECK(from_empty(test::schedule_of(name, p, m)).orders == test::schedule_of("1f1b", p, m).orders);
      }
    }
  }
}

// Eight minibatches from empty until empty take 1f1b's (8 + 3) 3; another eight come every 8 * 3.
TEST_CASE("the example of four equal stages", "[schedule][asynchronous]") {
  for (const std::string& name : kNames) {
    test::check_example({name, 4, 8, 1, 1, 2, 0, 0, 33, 24, {4, 3, 2, 1}});
  }
}

TEST_CASE("the period is the slowest stage's, per micro-batch", "[schedule][asynchronous][closed-form]") {
  std::mt19937 random(5);
  for (const std::string& name : kNames) {
    for (int n = 0; n < 60; ++n) {
      test::Pipeline pipeline{.ranks = test::pick(random, 1, 8)};
      double slowest = 0;
      for (int s = 0; s < pipeline.ranks; ++s) {
        pipeline.stages.push_back({0.5 + test::pick_seconds(random), 0.5 + test::pick_seconds(random), 0});
        slowest = std::max(slowest, pipeline.stages[s].forward + pipeline.stages[s].input);
      }
      const int m = test::pick(random, 8, 16);
      const Schedule schedule = test::schedule_of(name, pipeline.ranks, m);
      CAPTURE(name, pipeline.ranks, m);
      CHECK(test::period_of(pipeline, schedule) == near(m * slowest));
    }
  }
}

TEST_CASE("stage s holds P - s micro-batches", "[schedule][asynchronous][in-flight]") {
  for (const std::string& name : kNames) {
    for (int p = 1; p <= 16; ++p) {
      for (int m = name == "pipedream-2bw" ? p : 1; m <= 64; m += 3) { // even where an iteration has fewer
        const std::vector<double> held = in_flight(test::schedule_of(name, p, m));
        for (int s = 0; s < p; ++s) {
          CHECK(held[s] == p - s);
        }
      }
    }
  }
}

TEST_CASE("versions and staleness of four stages", "[schedule][asynchronous]") {
  const Schedule pipedream = test::schedule_of("pipedream", 4, 8);
  CHECK(pipedream.versions == std::vector<int>{4, 3, 2, 1});
  CHECK(pipedream.staleness == std::vector<double>{3, 2, 1, 0});
  CHECK(pipedream.steps_each_micro_batch);
  const Schedule two = test::schedule_of("pipedream-2bw", 4, 8);
  CHECK(two.versions == std::vector<int>{2, 2, 2, 2});
  CHECK(two.staleness == std::vector<double>{1, 1, 1, 1});
  CHECK(!two.steps_each_micro_batch);
  const Schedule mare = test::schedule_of("pipemare", 4, 8);
  CHECK(mare.versions.empty());
  CHECK(mare.staleness == std::vector<double>{3.0 / 8, 2.0 / 8, 1.0 / 8, 0}); // 3 of 8 run a step before their own
  const Schedule xpipe = test::schedule_of("xpipe", 4, 8);
  CHECK(xpipe.predicts_weights);
  CHECK(xpipe.versions == std::vector<int>{2, 2, 2, 2});
  CHECK(xpipe.staleness == mare.staleness);
}

// Steps are counted while the order repeats: those between each F and the step that its B belongs to.
double counted_staleness(const Schedule& schedule, int stage) {
  constexpr int kRounds = 12;
  std::map<int, int> forward; // micro-batch, over all rounds -> steps done when it ran
  int steps = 0;
  int counted = 0;
  double sum = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (const Action& action : schedule.orders[stage]) {
      const int m = action.micro_batch + round * schedule.micro_batches;
      if (action.kind == TaskKind::forward) {
        forward[m] = steps;
      } else if (forward.contains(m) && round >= kRounds / 2) { // the steady state
        sum += steps - forward[m];
        ++counted;
      }
      steps += schedule.steps_each_micro_batch && action.kind == TaskKind::backward ? 1 : 0;
    }
    steps += schedule.steps_each_micro_batch ? 0 : 1;
  }
  return sum / counted;
}

TEST_CASE("staleness is that of the order", "[schedule][asynchronous]") {
  for (const char* name : {"pipedream", "pipemare", "xpipe"}) { // pipedream-2bw waits with newer weights on purpose
    for (int p = 1; p <= 6; ++p) {
      for (int m = 1; m <= 9; ++m) {
        CAPTURE(name, p, m);
        const Schedule schedule = test::schedule_of(name, p, m);
        for (int s = 0; s < p; ++s) {
          CHECK(schedule.staleness[s] == near(counted_staleness(schedule, s)));
        }
      }
    }
  }
}

// PipeDream's three workers for the first stage of VGG-16 and one for the second: depths 1 and 0.
TEST_CASE("replicas take whole micro-batches in turn", "[schedule][asynchronous]") {
  const Schedule schedule = replicated({3, 1}, 6);
  CHECK(schedule.stages == 2);
  REQUIRE(schedule.orders.size() == 4);
  CHECK(to_text(schedule.orders[0]) == "F3@0 B0@0 F6@0 B3@0");
  CHECK(to_text(schedule.orders[1]) == "F4@0 B1@0 F7@0 B4@0");
  CHECK(to_text(schedule.orders[2]) == "F5@0 B2@0 F8@0 B5@0");
  CHECK(to_text(schedule.orders[3]) == "F0@1 B0@1 F1@1 B1@1 F2@1 B2@1 F3@1 B3@1 F4@1 B4@1 F5@1 B5@1");
  CHECK(schedule.versions == std::vector<int>{2, 1});
  CHECK(in_flight(schedule) == std::vector<double>{2, 1});
}

TEST_CASE("every set of replicas runs, and its slowest stage sets the period", "[schedule][asynchronous]") {
  for (int a = 1; a <= 4; ++a) {
    for (int b = 1; b <= 4; ++b) {
      for (int c = 1; c <= 4; ++c) {
        CAPTURE(a, b, c);
        const Schedule schedule = replicated({a, b, c}, 24);
        CHECK(join(schedule_defects(schedule), "\n").empty());
      }
    }
  }
  // Stage 0 takes 3 + 3 on three ranks, stage 1 2 on one: 2 a micro-batch.
  const test::Pipeline pipeline{.stages = {{3, 3, 0}, {1, 1, 0}}, .ranks = 4};
  CHECK(test::period_of(pipeline, replicated({3, 1}, 6)) == near(6 * 2));
}

TEST_CASE("impossible numbers are refused with the nearest possible ones", "[schedule][asynchronous]") {
  const auto reason = [](const char* name, const ScheduleRequest& request) {
    return std::get<Infeasible>(make_schedule(test::schedule_row(name), request)).reason;
  };
  CHECK_THAT(reason("pipedream", {.ranks = 5, .micro_batches = 8, .replicas = {2, 3}}),
             Catch::EndsWith("no multiple of 6; nearest: 6 or 12"));
  CHECK_THAT(reason("pipedream", {.ranks = 4, .micro_batches = 2, .replicas = {3, 1}}),
             Catch::EndsWith("no multiple of 3; nearest: 3"));
  CHECK_THAT(reason("pipedream-2bw", {.ranks = 4, .micro_batches = 3}), Catch::EndsWith("nearest: 4"));
}

TEST_CASE("an order that cannot repeat is a deadlock", "[schedule][asynchronous][defects]") {
  // Stage 1 wants micro-batch 1 before it gives back 0, but stage 0 sends 1 only when it has 0 back.
  using enum TaskKind;
  Schedule schedule{.name = "stuck", .stages = 2, .micro_batches = 1, .flushes = false};
  schedule.orders = {{{backward, 0, 0}, {forward, 1, 0}}, {{forward, 1, 1}, {backward, 0, 1}}};
  CHECK(schedule_defects(schedule) ==
        std::vector<std::string>{"deadlock: B0@0 on rank 0 waits for B0@1; F1@1 on rank 1 waits for F1@0"});
  // A forward a round earlier than what it needs.
  schedule.orders = {{{forward, 0, 0}, {backward, 0, 0}}, {{backward, 0, 1}, {forward, 1, 1}}};
  CHECK(schedule_defects(schedule) ==
        std::vector<std::string>{"deadlock: F1@1 on rank 1 waits for F1@0, which comes a round later"});
}

// Stage 0 on two devices that share each micro-batch, and `others` stages behind it on a device each: 1 s forward and 2
// s backward for each of 4 micro-batches, an optimiser step of `step` seconds on stage 0 and gradients whose ring takes
// `reduce` seconds.
double period_with_ring(const char* name, int others, double reduce, double step) {
  const int stages = 1 + others;
  PlanCost cost;
  for (int s = 0; s < stages; ++s) {
    StageCost& stage = cost.stages.emplace_back();
    for (int device = s == 0 ? 0 : s + 1; device <= s + 1; ++device) {
      ReplicaCost replica;
      replica.device = device;
      replica.forward = replica.backward_input = replica.backward_weight = Seconds{1};
      replica.optimizer = Seconds{s == 0 ? step : 0};
      stage.replicas.push_back(replica);
    }
    if (s > 0) {
      cost.edges.push_back({s - 1, s, Bytes{0}});
      cost.cut.push_back(Bytes{0});
    }
  }
  cost.stages[0].gradients = Bytes{reduce}; // each of two replicas sends all of it, at 1 B/s
  const Platform platform = make_star_platform({}, stages + 1, BytesPerSecond{1}, Seconds{0});
  Router router(platform);
  const TaskGraph graph =
      make_task_graph({.cost = cost, .schedule = test::schedule_of(name, stages, 4), .router = router});
  constexpr int kIterations = 60;
  const ReplayRequest request{graph, platform, kIterations};
  const Timeline timeline = replay_analytic({&request, 1}).front();
  const double* const finish = timeline.finish.data() + graph.program_of(0).back();
  return (finish[graph.tasks() * (kIterations - 1)] - finish[graph.tasks() * (kIterations / 2 - 1)]) /
         (kIterations / 2);
}

// 2BW's two versions leave an iteration for the reduction. The device computes 4 x 3 s and steps; the ring may take as
// long before anyone waits. Schedules with one version of the weights wait for it.
TEST_CASE("pipedream-2bw reduces gradients beside the next iteration", "[schedule][asynchronous][closed-form]") {
  for (const char* name : {"pipemare", "xpipe"}) {
    CHECK(period_with_ring(name, 0, 9, 1) == near(12 + 9 + 1));
  }
  for (const auto& [reduce, period] : {std::pair{0.0, 13.0}, {9.0, 13.0}, {13.0, 13.0}, {14.0, 14.0}, {20.0, 20.0}}) {
    CAPTURE(reduce);
    CHECK(period_with_ring("pipedream-2bw", 0, reduce, 1) == near(period));
  }
}

// With one stage behind it, stage 0 runs the first forward of the iteration after next one turn of 3 s before the end
// of the next one. It needs the step, so that only 4 x 3 - 3 s hide the ring; after it comes the last backward, which
// makes the gradients of the next ring.
TEST_CASE("a late step is there for the first forward that needs it", "[schedule][asynchronous][closed-form]") {
  for (const auto& [reduce, period] : {std::pair{5.0, 12.0}, {9.0, 12.0}, {10.0, 13.0}, {17.0, 20.0}}) {
    CAPTURE(reduce);
    CHECK(period_with_ring("pipedream-2bw", 1, reduce, 0) == near(period));
  }
}

} // namespace
} // namespace stagecraft
