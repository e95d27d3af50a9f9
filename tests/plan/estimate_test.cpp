// Closed forms on a plan by hand, and the lower bound against every replay.
// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "sim/replay/replay.hpp"
#include "sim/schedule/task_graph.hpp"
#include "sim/timeline/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/plan/random_toys.hpp"

namespace stagecraft {
namespace {

using test::near;

// Operators of 3, 6 and 9 s; tensors of 4 and 8 B at 2 B/s; each way out costs 1 s.
test::Toy chain() {
  test::Toy toy;
  toy.operators = {{{3}, 4}, {{6}, 8}, {{9}, 0}};
  toy.edges = test::chain_edges(3);
  toy.devices.assign(4, {0, 2, 1});
  toy.micro_batches = 5;
  return toy;
}

Plan plan_of(const std::vector<std::vector<OperatorId>>& stages, const std::vector<std::vector<DeviceId>>& devices) {
  Plan plan;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    plan.stages.push_back({.operators = stages[s], .devices = devices[s]});
  }
  return plan;
}

TEST_CASE("the bottleneck is the slowest device or twice the slowest transfer", "[plan][estimate]") {
  const test::World world(chain());
  CHECK(world.bottleneck_of(plan_of({{0, 1, 2}}, {{0}})).value == near(18));
  CHECK(world.bottleneck_of(plan_of({{0}, {1, 2}}, {{0}, {1}})).value == near(15)); // 2 (1 + 4/2) = 6
  CHECK(world.bottleneck_of(plan_of({{0, 1}, {2}}, {{0}, {1}})).value == near(2 * (1 + 8.0 / 2)));
  CHECK(world.bottleneck_of(plan_of({{0}, {1}, {2}}, {{0}, {1}, {2}})).value == near(10));
  // Two stages on one device add up, and what passes between them is free.
  CHECK(world.bottleneck_of(plan_of({{0}, {1}, {2}}, {{0}, {1}, {0}})).value == near(12));
  CHECK(world.bottleneck_of(plan_of({{0, 1}, {2}}, {{0}, {0}})).value == near(18));
}

TEST_CASE("replicas share a stage's time, the slowest pair decides a transfer", "[plan][estimate]") {
  const test::World world(chain());
  const Plan plan = plan_of({{0, 1}, {2}}, {{0, 1}, {2}});
  CHECK(world.bottleneck_of(plan).value == near(10)); // 9 / 2, 9, 2 (1 + 8 / 2)
}

TEST_CASE("a tensor that crosses two boundaries counts at both", "[plan][estimate]") {
  test::Toy toy = chain();
  toy.edges.emplace_back(0, 2);
  const test::World world(toy);
  const Plan plan = plan_of({{0}, {1}, {2}}, {{0}, {1}, {2}});
  const PlanCost cost = cost_plan(world.problem, plan);
  CHECK(cost.cut[0].value == 4);
  CHECK(cost.cut[1].value == 4 + 8);
  // It is sent once to each stage that needs it.
  REQUIRE(cost.edges.size() == 3);
  CHECK((cost.edges[1].from == 0 && cost.edges[1].to == 2 && cost.edges[1].bytes.value == 4));
}

TEST_CASE("the estimate is (M-1) max + sum + twice the transfers + reduction + step", "[plan][estimate]") {
  const test::World world(chain());
  const Plan plan = plan_of({{0, 1}, {2}}, {{0}, {1}});
  const PlanCost cost = cost_plan(world.problem, plan);
  CHECK(estimate_iteration(world.problem, plan, cost).value == near((5 - 1) * 9 + 9 + 9 + 2 * (1 + 8.0 / 2)));
}

TEST_CASE("the bound of equal devices is the work shared by all", "[plan][bound]") {
  const test::World world(chain());
  CHECK(lower_bound(world.problem, {0}).value == near(5 * 18));
  CHECK(lower_bound(world.problem, {0, 1, 2}).value == near(5 * 18.0 / 3));
}

TEST_CASE("the bound of unequal devices weighs them by speed", "[plan][bound]") {
  // Type 1 is twice as fast at all: speeds 1 : 2, so one and the other take a third and two thirds of 18 s.
  test::Toy toy = chain();
  toy.types = {{}, {}};
  toy.devices = {{0}, {1}};
  toy.micro_batches = 1;
  for (test::ToyOperator& op : toy.operators) {
    op.seconds.push_back(op.seconds[0] / 2);
  }
  CHECK(lower_bound(test::World(toy).problem, {0, 1}).value == near(6));
}

// The iteration time of a plan under a schedule, or nothing where the schedule cannot run it.
std::optional<double> replayed(const Problem& problem, const Plan& plan, const ScheduleRow& row, bool barrier) {
  const PlanCost cost = cost_plan(problem, plan);
  const int stages = static_cast<int>(plan.stages.size());
  Schedule schedule;
  if (is_pipeline(plan, 1)) {
    const ScheduleResult made = make_schedule(row, {stages, problem.micro_batches, 1});
    if (!std::holds_alternative<Schedule>(made)) {
      return std::nullopt;
    }
    schedule = std::get<Schedule>(made);
  } else {
    schedule = make_list_schedule(problem.router, plan, cost, problem.micro_batches);
  }
  const TaskGraph graph =
      make_task_graph({.cost = cost, .schedule = schedule, .router = problem.router, .barrier = barrier});
  const ReplayRequest request{&graph, barrier ? 1 : 4};
  const Timeline timeline = replay_analytic(problem.platform, std::span(&request, 1)).front();
  return measure(graph, timeline, problem.platform).iteration.value;
}

// Replays every strategy under every schedule; the number of runs, none of them below the bound.
int check_bound(const Problem& problem, const std::vector<DeviceId>& devices) {
  const double bound = lower_bound(problem, devices).value;
  const int m = problem.micro_batches;
  const PlanRequest request{.problem = problem, .devices = devices, .in_flight = [m](int, int) { return m; }};
  int runs = 0;
  for (const StrategyRow& strategy : strategies()) {
    const PlanResult result = make_plan(strategy, request);
    for (const ScheduleRow& row : schedules()) {
      const Plan* plan = std::get_if<Plan>(&result);
      const auto seconds = plan != nullptr ? replayed(problem, *plan, row, runs % 2 == 0) : std::nullopt;
      runs += seconds ? 1 : 0;
      if (seconds && *seconds < bound * (1 - 1e-9)) {
        FAIL_CHECK(strategy.name << " under " << row.name << " takes " << *seconds << ", less than the bound "
                                 << bound);
      }
    }
  }
  return runs;
}

TEST_CASE("no replay is quicker than the bound", "[plan][bound]") {
  std::mt19937 random(17);
  int runs = 0;
  for (int n = 0; n < 100; ++n) {
    CAPTURE(n);
    const test::World world(test::random_toy(random, {.operators = 12, .devices = 5, .kernels = n % 2 == 1}));
    runs += check_bound(world.problem, world.request().devices);
  }
  CHECK(runs > 2000);
}

TEST_CASE("no replay is quicker than the bound where times were measured at several sizes", "[plan][bound]") {
  // Per sample 10, 4 and 12 s at 1, 3 and 4 samples: the best size is none of the batch's halves.
  std::vector<Operator> operators(4);
  std::vector<MeasuredTime> slow(4, {Seconds{5}, Seconds{5}});
  std::vector<MeasuredTime> good(4, {Seconds{6}, Seconds{6}});
  std::vector<MeasuredTime> poor(4, {Seconds{24}, Seconds{24}});
  for (int op = 0; op < 4; ++op) {
    operators[op].name = std::to_string(op);
    operators[op].kind = KernelKind::matmul;
  }
  const std::vector<Profile> profiles = {
      {"", 1, Precision::fp32, slow}, {"", 3, Precision::fp32, good}, {"", 4, Precision::fp32, poor}};
  const ModelGraph model = make_graph("profiled", operators, test::chain_edges(4), profiles, {"test", 0, 0});
  DeviceType type;
  type.name = "x";
  for (auto& rates : type.rates) {
    rates.fill(FlopsPerSecond{1});
  }
  type.peak.fill(FlopsPerSecond{1});
  type.memory = Bytes{test::kInfinite};
  const Platform platform = make_star_platform(type, 2, BytesPerSecond{1}, Seconds{0});
  const auto cost = make_profiled({.model = model});
  Router router(platform);
  Training training;
  for (const int batch : {3, 9, 12, 18}) {
    for (const int m : {1, 3}) {
      training.global_batch = batch;
      CAPTURE(batch, m);
      const Problem problem =
          make_problem(model, platform, *std::get<std::unique_ptr<CostModel>>(cost), training, router, m);
      CHECK(check_bound(problem, {0, 1}) > 10);
    }
  }
}

} // namespace
} // namespace stagecraft
