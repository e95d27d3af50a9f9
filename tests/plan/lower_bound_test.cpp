// The bounds by hand, compared with every replay, and with the best of all plans of small problems.
// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "sim/base/improves.hpp"
#include "sim/plan/estimate/check_plan.hpp"
#include "sim/plan/lower_bound.hpp"
#include "sim/platform/fits/kernel_fits.hpp"
#include "sim/replay/replay.hpp"
#include "sim/schedule/place.hpp"
#include "sim/schedule/task_graph/task_graph.hpp"
#include "sim/strategy/first_plans.hpp"
#include "sim/strategy/heuristic/placement.hpp"
#include "sim/timeline/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/plan/random_toys.hpp"

namespace stagecraft {
namespace {

using test::near;

TEST_CASE("the bound of equal devices is the work shared by all", "[plan][bound]") {
  const test::World world(test::chain_of_three());
  CHECK(lower_bound(world.problem, {0}, false).value == near(5 * 18));
  CHECK(lower_bound(world.problem, {0, 1, 2}, false).value == near(5 * 18.0 / 3));
}

TEST_CASE("the bound of unequal devices weighs them by speed", "[plan][bound]") {
  // Type 1 is twice as fast at all: speeds 1 : 2, so one and the other take a third and two thirds of 18 s.
  test::Toy toy = test::chain_of_three();
  toy.types = {{}, {}};
  toy.devices = {{0}, {1}};
  toy.micro_batches = 1;
  for (test::ToyOperator& op : toy.operators) {
    op.seconds.push_back(op.seconds[0] / 2);
  }
  CHECK(lower_bound(test::World(toy).problem, {0, 1}, false).value == near(6));
}

// Operator 0 takes 3 s on type 0 and 30 s on type 1, operator 1 the other way round: 3 s are shared best by one
// operator each. The path of the one micro-batch goes through both, forwards and back (a third of the time each), and
// even both devices together need 1/(1/1 + 1/10) s for a third.
TEST_CASE("the bound from empty includes one micro-batch's way through the model", "[plan][bound]") {
  test::Toy toy;
  toy.operators = {{{3, 30}}, {{30, 3}}};
  toy.edges = test::chain_edges(2);
  toy.types = {{}, {}};
  toy.devices = {{0}, {1}};
  const test::World world(toy);
  const LeastTimes times = least_times(world.problem, {0, 1});
  CHECK(work_bound(world.problem, times).value == near(3));
  CHECK(path_bound(world.problem, times).value == near(4 / (1 + 0.1)));
  CHECK(lower_bound(world.problem, {0, 1}, true).value == near(4 / 1.1));
  CHECK(lower_bound(world.problem, {0, 1}, false).value == near(3)); // in a period others fill the gaps
}

// Four operators of 1 s on type 0 and 2 s on type 1, each keeping 4 + 4 B of weight and gradient. Without limits they
// take 1/(1/4 + 1/8) s; where type 0 has room for one, type 1 has three to do.
TEST_CASE("memory keeps work from the fast device", "[plan][bound]") {
  test::Toy toy;
  toy.operators.assign(4, {{1, 2}, 0, 1});
  toy.edges = test::chain_edges(4);
  toy.types = {{}, {}};
  toy.devices = {{0}, {1}};
  toy.training.optimizer = &kOptimizers[0];
  CHECK(lower_bound(test::World(toy).problem, {0, 1}, false).value == near(8.0 / 3));
  toy.types[0].memory = 8;
  const double bound = lower_bound(test::World(toy).problem, {0, 1}, false).value;
  CHECK(bound <= 6 * (1 + 1e-9));
  CHECK(bound > 0.95 * 6);
}

// Five micro-batches of 6 s keep the device of operator 1 busy; the first comes after 3/3 s of operator 0, and the
// gradient of the last goes back through it where the weight gradients wait for that: 1 + max(5 * 6, 5 * 4 + 1).
TEST_CASE("an operator that may not be replicated is all on one device", "[plan][bound]") {
  test::Toy toy = test::chain_of_three();
  toy.operators[0].divisible = toy.operators[1].divisible = false;
  toy.operators.pop_back();
  toy.edges.pop_back();
  const test::World world(toy);
  const LeastTimes times = least_times(world.problem, {0, 1, 2});
  CHECK(indivisible_bound(world.problem, times, false).value == near(30));
  CHECK(indivisible_bound(world.problem, times, true).value == near(31));
  CHECK(lower_bound(world.problem, {0, 1, 2}, false).value == near(30)); // shared: 5 * 9 / 3
}

// Latencies of 5 s: neither a tensor and its gradient nor the smallest reduction is worth it; the 6 s alone are.
TEST_CASE("devices far apart are no better than one", "[plan][bound]") {
  test::Toy toy;
  toy.operators = {{{3}, 4}, {{3}, 4}};
  toy.edges = test::chain_edges(2);
  toy.devices = {{0, 8, 10}, {0, 8, 10}};
  CHECK(lower_bound(test::World(toy).problem, {0, 1}, true).value == near(6));
  CHECK(lower_bound(test::World(toy).problem, {0, 1}, false).value == near(3));
  toy.devices = {{0, 8, 4}, {0, 8, 4}}; // something crosses at least once
  CHECK(lower_bound(test::World(toy).problem, {0, 1}, true).value == near(4));
  toy.devices = {{0, 8, 10}, {0, 8, 10}};
  toy.edges.clear(); // one operator each, nothing to say
  CHECK(lower_bound(test::World(toy).problem, {0, 1}, true).value == near(3));
}

// Where reductions were measured, latencies of links say nothing about them: two devices may halve the 6 s.
TEST_CASE("the bound counts measured reductions as measured", "[plan][bound]") {
  test::Toy toy;
  toy.operators = {{{3}, 4, 1e6}, {{3}, 4, 1}};
  toy.edges = test::chain_edges(2);
  toy.devices = {{0, 8, 10}, {0, 8, 10}};
  toy.types[0].memory = 1e9;
  test::World world(toy);
  CHECK(lower_bound(world.problem, {0, 1}, true).value == near(6));
  auto fits = std::make_shared<KernelFits>();
  fits->collectives = {{"all-reduce", 2, {{{1e3, Seconds{1e-6}, 0}, {kInfinity, Seconds{0}, 1e-9}}, {}}},
                       {"all-gather", 2, {{{kInfinity, Seconds{0}, 0}}, {}}}};
  world.platform.types[0].fits = fits;
  for (Vertex& vertex : world.platform.vertices) {
    vertex.measured_at = BytesPerSecond{vertex.kind == Vertex::Kind::internal_switch ? 8.0 : 0.0};
  }
  CHECK(lower_bound(world.problem, {0, 1}, true).value == near(3));
  // 4 MB of gradients at 1 us a byte: 4 s, of a byte less. At ports of twice the bandwidth, half of that at most.
  fits->collectives[0].line.segments = {{kInfinity, Seconds{0}, 1e-6}};
  CHECK(lower_bound(world.problem, {0, 1}, true).value == near((4e6 - 1) * 1e-6));
  for (Vertex& vertex : world.platform.vertices) {
    vertex.measured_at = vertex.measured_at / 2;
  }
  CHECK(lower_bound(world.problem, {0, 1}, true).value == near(3));
}

// Two devices share out a product of 6 s. What it makes is read by no one, and its input is the data: nothing crosses.
TEST_CASE("a lone operator may be shared out and nothing exchanged", "[plan][bound]") {
  test::Toy toy;
  toy.operators = {{{6}, 4, 10}};
  toy.devices = {{0, 8, 10}, {0, 8, 10}};
  test::World world(toy);
  world.model.operators[0].kind = KernelKind::matmul;
  CHECK(lower_bound(world.problem, {0, 1}, true).value == near(3));
  Plan plan;
  plan.stages = {{.operators = {0}, .devices = {0, 1}, .tensor_parallel = 2}};
  CHECK(cost_plan(world.problem, plan).stages[0].replicas[0].busy().value == near(3));
}

// Weights, gradients and momentum of 12 B per parameter: neither device holds both operators, so a tensor must cross.
TEST_CASE("the bound counts on a single device only where one holds the model", "[plan][bound]") {
  test::Toy toy;
  toy.operators = {{{3}, 4, 10}, {{3}, 4, 10}};
  toy.edges = test::chain_edges(2);
  toy.devices = {{0, 8, 10}, {0, 8, 10}};
  toy.types[0].memory = 239;
  CHECK(lower_bound(test::World(toy).problem, {0, 1}, true).value == near(10));
  toy.types[0].memory = 240;
  CHECK(lower_bound(test::World(toy).problem, {0, 1}, true).value == near(6));
}

TEST_CASE("data-parallel refuses an operator that may not be replicated", "[plan]") {
  test::Toy toy = test::chain_of_three();
  toy.samples = 4;
  CHECK(std::get<Plan>(test::plan_of(test::World(toy), "data-parallel")).stages[0].devices.size() == 4);
  toy.operators[1].divisible = false;
  const PlanResult result = test::plan_of(test::World(toy), "data-parallel");
  REQUIRE(std::holds_alternative<Infeasible>(result));
  CHECK_THAT(std::get<Infeasible>(result).reason, Catch::Contains("'1'") && Catch::Contains("not divisible"));
}

// The iteration time of a plan under a schedule, or nothing where the schedule cannot run it.
std::optional<double> replayed(const Problem& problem, const Plan& plan, const ScheduleRow& row, bool barrier) {
  PlanCost cost = cost_plan(problem, plan);
  std::vector<int> rank_of;
  const int stages = static_cast<int>(plan.stages.size());
  Schedule schedule;
  const int chunks = chunks_of(row, 1);
  const bool fits = stages % chunks == 0 && is_pipeline(plan, chunks, row.stage_placement);
  if (!fits && is_pipeline(plan, 1)) {
    return std::nullopt; // too few stages per device
  }
  if (fits) {
    ScheduleRequest request{.ranks = stages / chunks, .micro_batches = problem.micro_batches, .chunks = chunks};
    if (row.in_turn) {
      for (const Stage& stage : plan.stages) {
        request.replicas.push_back(static_cast<int>(stage.replicas()));
      }
    }
    const ScheduleResult made = make_schedule(row, request);
    if (!std::holds_alternative<Schedule>(made)) {
      return std::nullopt;
    }
    schedule = std::get<Schedule>(made);
    const auto placed = place(plan, schedule);
    if (!std::holds_alternative<PlacedPlan>(placed)) {
      return std::nullopt; // a stage with replicas cannot run both ways
    }
    if (!replicated_indivisible(std::get<PlacedPlan>(placed).plan, problem.model).empty()) {
      return std::nullopt; // nor an operator that may be in one place only
    }
    cost = cost_plan(problem, std::get<PlacedPlan>(placed).plan);
    rank_of = std::get<PlacedPlan>(placed).rank_of;
  } else {
    schedule = make_list_schedule(problem.router, plan, cost, problem.micro_batches);
  }
  const TaskGraph graph = make_task_graph(
      {.cost = cost, .schedule = schedule, .router = problem.router, .barrier = barrier, .rank_of = rank_of});
  constexpr int kUntilFull = 20; // iterations of a schedule without a flush; the last half of them counts
  const ReplayRequest request{graph, problem.platform, !schedule.flushes ? kUntilFull : barrier ? 1 : 4};
  Timeline timeline = replay_analytic(std::span(&request, 1)).front();
  timeline.window = schedule.flushes ? 1 : kUntilFull / 2;
  return measure(graph, timeline, problem.platform).iteration.value;
}

// Whether a schedule keeps a barrier between iterations.
bool flushes(const ScheduleRow& row) {
  const ScheduleResult made = make_schedule(row, {.ranks = 2, .micro_batches = 4, .chunks = 2});
  return !std::holds_alternative<Schedule>(made) || std::get<Schedule>(made).flushes;
}

// Replays every strategy under every schedule; the number of runs, none of them below the bound.
int check_bound(const Problem& problem, const std::vector<DeviceId>& devices) {
  const double bounds[] = {lower_bound(problem, devices, false).value, lower_bound(problem, devices, true).value};
  const int m = problem.micro_batches;
  const PlanRequest request{.problem = problem, .devices = devices, .in_flight = [m](int, int) { return m; }};
  int runs = 0;
  for (const StrategyRow& strategy : strategies()) {
    const PlanResult result = make_plan(strategy, request);
    for (const ScheduleRow& row : schedules()) {
      const Plan* plan = std::get_if<Plan>(&result);
      for (const bool barrier : {false, true}) {
        const auto seconds = plan != nullptr ? replayed(problem, *plan, row, barrier) : std::nullopt;
        runs += seconds ? 1 : 0;
        const double bound = bounds[barrier && plan != nullptr && flushes(row) ? 1 : 0];
        if (seconds && *seconds < bound * (1 - 1e-9)) {
          FAIL_CHECK(strategy.name << " under " << row.name << (barrier ? "" : " with local steps") << " takes "
                                   << *seconds << ", less than the bound " << bound);
        }
      }
    }
  }
  return runs;
}

TEST_CASE("no replay is quicker than the bound", "[plan][bound]") {
  std::mt19937 random(17);
  int runs = 0;
  for (int n = 0; n < 240; ++n) {
    CAPTURE(n);
    test::Toy toy = test::random_toy(
        random,
        {.operators = 12, .devices = 5, .memory = n % 3 == 0, .kernels = n % 2 == 1, .indivisible = n % 4 == 2});
    toy.samples = test::pick(random, 1, 4);
    for (test::ToyDevice& device : toy.devices) {
      device.latency *= n % 5 == 0 ? 40 : 1; // so that communication decides now and then
    }
    const test::World world(toy);
    runs += check_bound(world.problem, world.request().devices);
  }
  CHECK(runs > 8000);
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

// The fastest replay over all placements of operators on devices, and the whole model on all devices, under all
// schedules.
double quickest(const test::World& world) {
  const PlanRequest request = world.request();
  const int operators = world.model.size();
  const int devices = static_cast<int>(request.devices.size());
  std::vector<Plan> plans;
  std::vector<int> place(operators, 0);
  for (int at = 0; at < operators;) {
    plans.push_back(make_segment_plan(request, place));
    for (at = 0; at < operators && ++place[at] == devices; ++at) {
      place[at] = 0;
    }
  }
  const PlanResult shared = split_data_parallel(request);
  plans.push_back(std::get<Plan>(shared));
  double least = test::kInfinite;
  for (const Plan& plan : plans) {
    for (const ScheduleRow& row : schedules()) {
      if (flushes(row)) {
        least = std::min(least, replayed(world.problem, plan, row, true).value_or(test::kInfinite));
      }
    }
  }
  return least;
}

TEST_CASE("the best of all small plans is near the bound, never below", "[plan][bound]") {
  std::mt19937 random(31);
  double sum = 0;
  int compared = 0;
  int equal = 0;
  for (int n = 0; n < 60; ++n) {
    CAPTURE(n);
    test::Toy toy = test::random_toy(random, {.operators = 4, .devices = 3});
    toy.samples = test::pick(random, 1, 4);
    const test::World world(toy);
    const double bound = lower_bound(world.problem, world.request().devices, true).value;
    const double best = quickest(world);
    CHECK(bound <= best * (1 + 1e-9));
    if (best > 0) {
      sum += bound / best;
      equal += bound > best * (1 - 1e-6) ? 1 : 0;
      ++compared;
    }
  }
  INFO(sum / compared << " of the best on average; reached in " << equal << " of " << compared);
  CHECK(sum / compared > 0.7);
  CHECK(equal > compared / 4);
}

} // namespace
} // namespace stagecraft
