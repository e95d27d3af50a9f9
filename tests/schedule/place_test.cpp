// Schedules whose stages live on two ranks, whose work is fused, or whose iterations overlap: placed, built, replayed.
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "sim/schedule/place.hpp"
#include "tests/catch.hpp"
#include "tests/schedule/pipelines.hpp"

namespace stagecraft {
namespace {

using test::near;
using enum TaskKind;

// `devices` one after the other, one stage on each; or the replicas given.
Plan plan_on(const std::vector<std::vector<DeviceId>>& stages) {
  Plan plan;
  for (const auto& devices : stages) {
    plan.stages.push_back({.devices = devices});
  }
  return plan;
}

// F 1 s, B 2 s on every device; a gradient all-reduce of `gradients` bytes.
PlanCost cost_of(const Plan& plan, double gradients = 0) {
  PlanCost cost;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    StageCost stage{.gradients = Bytes{gradients}, .turns = plan.stages[s].turns};
    for (std::size_t i = 0; i < plan.stages[s].devices.size(); ++i) {
      stage.replicas.push_back({.device = plan.stages[s].devices[i],
                                .share = plan.stages[s].share(i),
                                .forward = Seconds{1},
                                .backward_input = Seconds{2}});
    }
    cost.stages.push_back(stage);
    if (s > 0) {
      cost.edges.push_back({static_cast<int>(s) - 1, static_cast<int>(s), Bytes{0}});
    }
  }
  return cost;
}

struct Placed {
  PlacedPlan placed;
  test::PipelineRun run;
  double end(int iteration = 0) const { return run.end(iteration); }
};

Placed replay(const Plan& plan, const Schedule& schedule, int devices, int iterations = 1, double gradients = 0,
              double fused = 1, ReplayFunction engine = replay_analytic) {
  Placed result{std::get<PlacedPlan>(place(plan, schedule)), {}};
  result.run.platform = make_star_platform({}, devices, BytesPerSecond{1}, Seconds{0});
  const PlanCost cost = cost_of(result.placed.plan, gradients);
  Router router(result.run.platform);
  result.run.graph = make_task_graph({.cost = cost,
                                      .schedule = schedule,
                                      .router = router,
                                      .barrier = false,
                                      .fused = [fused](const FusedPair&) { return fused; },
                                      .rank_of = result.placed.rank_of});
  const ReplayRequest request{result.run.graph, result.run.platform, iterations};
  result.run.timeline = engine({&request, 1}).front();
  return result;
}

// Two ranks, two micro-batches: 0 goes down, 1 goes up.
Schedule bidirectional() {
  return {.name = "bidirectional",
          .stages = 2,
          .micro_batches = 2,
          .orders = {{{forward, 0, 0}, {forward, 1, 1}, {backward, 1, 1}, {backward, 0, 0}},
                     {{forward, 1, 0}, {forward, 0, 1}, {backward, 0, 1}, {backward, 1, 0}}}};
}

TEST_CASE("a stage on two ranks has both devices, its own first", "[schedule][place]") {
  const auto placed = std::get<PlacedPlan>(place(plan_on({{4}, {7}}), bidirectional()));
  CHECK(placed.plan.stages[0].devices == std::vector<DeviceId>{4, 7});
  CHECK(placed.plan.stages[1].devices == std::vector<DeviceId>{7, 4});
  CHECK(placed.plan.stages[0].turns == 2);
  CHECK(placed.keeps_turns);
  CHECK(placed.rank_of[4] == 0);
  CHECK(placed.rank_of[7] == 1);
}

TEST_CASE("micro-batches pass each other on a pipeline that is bidirectional", "[schedule][place]") {
  // Both ranks alike: F 0-1, the other's F 1-2 (its input is there at 1), B of it 2-4, own B 4-6 (its gradient is there
  // at 4): no pause at all. Then 100 B of each of the two stages reduced: 2 (r-1)/r 100 = 100 B each way at 1 B/s.
  for (const ReplayFunction engine : {replay_analytic, replay_simgrid}) {
    CHECK(replay(plan_on({{0}, {1}}), bidirectional(), 2, 1, 0, 1, engine).end() == near(6));
  }
  // Alone on their links, the engine `analytic` lets both stages reduce at once; stage 1 has its gradients at 4.
  CHECK(replay(plan_on({{0}, {1}}), bidirectional(), 2, 1, 100).end() == near(6 + 100));
}

TEST_CASE("fused work starts together and sends its results together", "[schedule][place]") {
  // Rank 0: F0 0-1, then F1 and B0 as one. B0's gradient comes from rank 1 at 1 + 1 + 2 = 4, so both run 4 to 4 + 3,
  // and F1's output, made at 5 were it alone, leaves at 7: F1 7-8 and B1 8-10 on rank 1, B1 10-12 on rank 0.
  const Schedule schedule{.name = "fused",
                          .stages = 2,
                          .micro_batches = 2,
                          .orders = {{{forward, 0, 0}, {forward, 1, 0}, {backward, 0, 0, true}, {backward, 1, 0}},
                                     {{forward, 0, 1}, {backward, 0, 1}, {forward, 1, 1}, {backward, 1, 1}}}};
  CHECK(to_text(schedule.orders[0]) == "F0@0 F1@0+B0@0 B1@0");
  for (const ReplayFunction engine : {replay_analytic, replay_simgrid}) {
    CHECK(replay(plan_on({{0}, {1}}), schedule, 2, 1, 0, 1, engine).end() == near(12));
    // Together they take two thirds of 3 s: 1 s less.
    CHECK(replay(plan_on({{0}, {1}}), schedule, 2, 1, 0, 2.0 / 3, engine).end() == near(11));
  }
}

// 1F1B without a flush on two ranks: rank 0 is one forward ahead.
Schedule without_flush(int micro_batches) {
  Schedule schedule{.name = "without flush", .stages = 2, .micro_batches = micro_batches, .flushes = false};
  schedule.orders.resize(2);
  for (int m = 0; m < micro_batches; ++m) {
    schedule.orders[0].push_back({forward, m + 1, 0});
    schedule.orders[0].push_back({backward, m, 0});
    schedule.orders[1].push_back({forward, m, 1});
    schedule.orders[1].push_back({backward, m, 1});
  }
  return schedule;
}

TEST_CASE("iterations that overlap take what the slowest stage takes", "[schedule][place]") {
  for (int m = 1; m <= 5; ++m) {
    for (const ReplayFunction engine : {replay_analytic, replay_simgrid}) {
      const Placed run = replay(plan_on({{0}, {1}}), without_flush(m), 2, 8, 0, 1, engine);
      CHECK(run.run.graph.overlaps);
      CHECK(run.end(7) - run.end(6) == near(3.0 * m));
    }
  }
}

TEST_CASE("one iteration of overlapping ones, from empty", "[schedule][place]") {
  const Schedule alone = from_empty(without_flush(3));
  CHECK(to_text(alone.orders[0]) == "F0@0 F1@0 B0@0 F2@0 B1@0 B2@0");
  CHECK(to_text(alone.orders[1]) == "F0@1 B0@1 F1@1 B1@1 F2@1 B2@1");
  CHECK(alone.flushes);
  CHECK(from_empty(test::schedule_of("1f1b", 2, 3)) == test::schedule_of("1f1b", 2, 3));
  // Three iterations ahead with one micro-batch each.
  Schedule far = without_flush(1);
  far.orders[0] = {{forward, 3, 0}, {backward, 0, 0}};
  CHECK(to_text(from_empty(far).orders[0]) == "F0@0 B0@0");
  CHECK(most_held(far) == std::vector<int>{4, 1});
}

TEST_CASE("replicas that take turns run whole micro-batches", "[schedule][place]") {
  // Stage 0 on two devices, each every other micro-batch; stage 1 on one. Steps after every backward, without cost.
  Schedule schedule{.name = "in turn",
                    .stages = 2,
                    .micro_batches = 2,
                    .flushes = false,
                    .steps_each_micro_batch = true,
                    .orders = {{{forward, 2, 0}, {backward, 0, 0}},
                               {{forward, 3, 0}, {backward, 1, 0}},
                               {{forward, 0, 1}, {backward, 0, 1}, {forward, 1, 1}, {backward, 1, 1}}}};
  const Placed run = replay(plan_on({{0, 1}, {2}}), schedule, 3, 12, 0);
  CHECK(run.placed.plan.stages[0].turns == 2);
  CHECK(run.placed.plan.stages[1].turns == 1);
  CHECK_FALSE(run.placed.keeps_turns);
  // Stage 1 takes 3 s for each of two micro-batches and is never without work.
  CHECK(run.end(11) - run.end(10) == near(6));
  // Each device of stage 0: F, B and a step; stage 1: two of each.
  CHECK(run.run.graph.program_of(0).size() == 3);
  CHECK(run.run.graph.program_of(2).size() == 6);
}

// Each rank has two replicas of either stage: those of the micro-batches that go down, then those of the others.
// Unequal shares of a micro-batch are the same on both ranks.
TEST_CASE("a stage on two ranks has all its replicas on each", "[schedule][place]") {
  Plan plan = plan_on({{0, 1}, {2, 3}});
  plan.stages[0].shares = {0.75, 0.25};
  const auto placed = std::get<PlacedPlan>(place(plan, bidirectional()));
  CHECK(placed.plan.stages[0].devices == std::vector<DeviceId>{0, 1, 2, 3});
  CHECK(placed.plan.stages[1].devices == std::vector<DeviceId>{2, 3, 0, 1});
  CHECK(placed.plan.stages[0].turns == 2);
  CHECK(placed.plan.stages[0].shares == std::vector<double>{0.75, 0.25, 0.75, 0.25});
  CHECK(placed.plan.stages[1].share(3) == 0.5);
  CHECK(placed.rank_of == std::vector<int>{0, 0, 1, 1});
  CHECK(placed.keeps_turns);
}

// As above with one device per rank: a replica hands on to that of its own number, on the other rank. Each of the two
// stages' 100 B is reduced over four: 2 (4-1)/4 100 = 150 s.
TEST_CASE("replicas of a bidirectional pipeline share micro-batches and reduce over both ranks", "[schedule][place]") {
  const Placed run = replay(plan_on({{0, 1}, {2, 3}}), bidirectional(), 4);
  CHECK(run.end() == near(6));
  for (const std::size_t device : {0, 1, 2, 3}) {
    CHECK(run.run.graph.program_of(device).size() == 4 + 2); // F and B of either stage, and two steps
  }
  CHECK(replay(plan_on({{0, 1}, {2, 3}}), bidirectional(), 4, 1, 100).end() == near(6 + 150));
  int transfers = 0; // of two replicas each way: an activation and a gradient of one micro-batch each
  for (const std::int32_t work : run.run.graph.work) {
    transfers += run.run.graph.works[work].kind == transfer ? 1 : 0;
  }
  CHECK(transfers == 2 * 2 * 2);
}

// Two ranks of two devices can each hold both stages in two shards; a rank of one device cannot.
TEST_CASE("a stage that is divided over devices goes only to ranks of as many", "[schedule][place]") {
  Plan plan = plan_on({{0, 1}, {2, 3}});
  plan.stages[0].tensor_parallel = plan.stages[1].tensor_parallel = 2;
  const auto placed = std::get<PlacedPlan>(place(plan, bidirectional()));
  CHECK(placed.plan.stages[1].devices == std::vector<DeviceId>{2, 3, 0, 1});
  plan.stages[0].devices = {0};
  plan.stages[0].tensor_parallel = 1;
  CHECK(std::get<Infeasible>(place(plan, bidirectional())).reason ==
        "the schedule has stage 0 on rank 1 too, which has 2 devices, the plan divides it over 1; allowed: ranks of "
        "equally many devices");
}

TEST_CASE("a plan of another shape is refused", "[schedule][place]") {
  CHECK(std::get<Infeasible>(place(plan_on({{0}}), bidirectional())).reason == "the schedule has 2 stages, the plan 1");
  Schedule schedule = bidirectional(); // and a third stage on both ranks
  schedule.stages = 3;
  for (int rank : {0, 1}) {
    schedule.orders[rank].push_back({forward, rank, 2});
    schedule.orders[rank].push_back({backward, rank, 2});
  }
  CHECK(std::get<Infeasible>(place(plan_on({{0, 1}, {2, 3}, {0, 1}}), schedule)).reason ==
        "the schedule has stage 2 on 2 ranks, the plan has it on 2 replicas; allowed: one, one per rank, or those of "
        "the rank of the stage's own number");
}

} // namespace
} // namespace stagecraft
