// Exchanges of tensor-parallel groups as tasks: when they start, who waits for them, and what shares their links.
// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "sim/timeline/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/plan/tensor_chain.hpp"
#include "tests/schedule/pipelines.hpp"

namespace stagecraft {
namespace {

using test::Chain;
using test::grouped;
using test::near;

struct Replayed {
  TaskGraph graph;
  Timeline timeline;
  Metrics metrics;

  using Times = std::vector<std::pair<double, double>>;
  /// Start and finish of a device's tasks, in the order of its program.
  Times of_device(std::size_t device) const {
    Times times;
    for (const TaskId task : graph.program_of(device)) {
      times.emplace_back(timeline.start[task], timeline.finish[task]);
    }
    return times;
  }
  /// Start and finish of the tasks of a kind.
  Times of_kind(TaskKind kind) const {
    Times times;
    for (TaskId task = 0; task < graph.tasks(); ++task) {
      if (graph.works[graph.work[task]].kind == kind) {
        times.emplace_back(timeline.start[task], timeline.finish[task]);
      }
    }
    std::sort(times.begin(), times.end());
    return times;
  }
};

Replayed replay(Chain& world, const Plan& plan, ExchangeTasks exchanges, ReplayFunction engine = replay_analytic,
                const std::vector<SpeedChange>& speeds = {}, int micro_batches = 1) {
  const PlanCost cost = cost_plan(world.problem, plan);
  const Schedule schedule = test::schedule_of("1f1b", static_cast<int>(plan.stages.size()), micro_batches);
  Replayed run;
  run.graph = make_task_graph({.cost = cost, .schedule = schedule, .router = world.router, .exchanges = exchanges});
  const ReplayRequest request{run.graph, world.platform, 1, speeds};
  run.timeline = engine({&request, 1}).front();
  run.metrics = measure(run.graph, run.timeline, world.platform);
  return run;
}

void check_times(const Replayed::Times& times, const Replayed::Times& expected) {
  REQUIRE(times.size() >= expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(times[i].first == near(expected[i].first));
    CHECK(times[i].second == near(expected[i].second));
  }
}

// F computes operator 0 for 6/3/2 s, gathers 8 B in 2 + 1 s, and computes operators 1 and 2 for 1 + 1.5 s. B computes
// the gradient of operator 2's input for 1.5 s and adds up its 8 B in 4 + 2 s, beside the gradient of its weights; then
// it gathers operator 0's output again in 3 s, and computes for 2 + 2 s.
TEST_CASE("a pass is divided where its group exchanges data", "[schedule][exchange]") {
  Chain world(KernelKind::normalization, 2);
  const Plan plan = grouped({{0, 1, 2}}, {{0, 1}}, {2});
  for (const ReplayFunction engine : {replay_analytic, replay_simgrid, replay_simgrid_full}) {
    const Replayed run = replay(world, plan, ExchangeTasks::all, engine);
    for (const std::size_t device : {0, 1}) {
      check_times(run.of_device(device), {{0, 1}, {4, 6.5}, {6.5, 8}, {8, 9.5}, {14, 14}, {17, 21}});
      CHECK(run.metrics.busy[device].value == near(21)); // exchanges are a part of F and B
      CHECK(run.metrics.exposed[device].value == near(0));
    }
    check_times(run.of_kind(TaskKind::exchange), {{1, 4}, {8, 14}, {14, 17}});
    CHECK(run.of_kind(TaskKind::exchange).size() == 3); // of the group, not of each device
  }
  const Replayed whole = replay(world, plan, ExchangeTasks::none);
  CHECK(whole.of_device(0).size() == 3); // F, B, step
  CHECK(whole.metrics.iteration.value == near(21));
  CHECK(whole.metrics.busy[1].value == near(21));
}

// Device 1 computes at half speed: the exchanges start when it has come to them, and device 0 waits.
TEST_CASE("an exchange starts when the last device of the group has come to it", "[schedule][exchange]") {
  Chain world(KernelKind::normalization, 2);
  const std::vector<SpeedChange> slow = {{1, Seconds{0}, 0.5}};
  const Replayed run =
      replay(world, grouped({{0, 1, 2}}, {{0, 1}}, {2}), ExchangeTasks::all, replay_simgrid_full, slow);
  check_times(run.of_device(1), {{0, 2}, {5, 10}, {10, 13}, {13, 16}, {19, 19}, {22, 30}});
  check_times(run.of_device(0), {{0, 1}, {5, 7.5}, {7.5, 9}, {9, 10.5}, {19, 19}, {22, 26}});
  check_times(run.of_kind(TaskKind::exchange), {{2, 5}, {13, 19}, {19, 22}});
  // Device 0 is done at 26, and waits from 1 to 2 and from 10.5 to 13; device 1 is always busy.
  CHECK(run.metrics.busy[0].value == near(26 - 1 - 2.5));
  CHECK(run.metrics.busy[1].value == near(30));
  CHECK(run.metrics.load_imbalance == near(30 / ((22.5 + 30) / 2) - 1));
}

// Stage 0 computes for 1 s, gathers 8 B, computes for 1 s and sends 8 B. The second micro-batch gathers while the first
// is sent over the same way out, of 2 B/s: latencies end at 6 and 7, then both have 1 B/s until the gathering has its 4
// B at 11, when 2 B of the sending are left.
TEST_CASE("an exchange shares links with transfers", "[schedule][exchange]") {
  Chain world(KernelKind::elementwise, 4);
  const Plan plan = grouped({{0, 1}, {2}}, {{0, 1}, {2, 3}}, {2, 2});
  for (const ExchangeTasks exchanges : {ExchangeTasks::all, ExchangeTasks::where_shared}) {
    const Replayed run = replay(world, plan, exchanges, replay_simgrid, {}, 2);
    check_times(run.of_device(0), {{0, 1}, {4, 5}, {5, 6}, {11, 12}});
    check_times(run.of_kind(TaskKind::exchange), {{1, 4}, {6, 11}});
    check_times(run.of_kind(TaskKind::transfer), {{5, 12}, {5, 12}});
  }
  const Replayed alone = replay(world, plan, ExchangeTasks::none, replay_simgrid, {}, 2);
  check_times(alone.of_device(0), {{0, 5}, {5, 10}});
  check_times(alone.of_kind(TaskKind::transfer), {{5, 10}, {5, 10}});
}

// Of both devices F has two steps, B four; they share the flows of one exchange and of two.
TEST_CASE("exchanges stay parts of their passes where they would be too many tasks", "[schedule][exchange]") {
  Chain world(KernelKind::normalization, 2);
  const PlanCost cost = cost_plan(world.problem, grouped({{0, 1, 2}}, {{0, 1}}, {2}));
  const Schedule schedule = test::schedule_of("1f1b", 1, 1);
  const auto made = [&](double most) {
    return make_task_graph({.cost = cost,
                            .schedule = schedule,
                            .router = world.router,
                            .exchanges = ExchangeTasks::all,
                            .most_tasks = most});
  };
  const TaskGraph all = made(1000);
  CHECK(all.undivided == 0);
  const double with_steps = all.tasks();
  CHECK(with_steps >= 2 * (2 + 4 + 1) + 3); // a flow or more of each exchange
  CHECK(made(with_steps).undivided == 0);
  CHECK(made(with_steps - 1).undivided == with_steps);
  CHECK(made(with_steps - 1).program_of(0).size() == 3);
}

TEST_CASE("an exchange that shares no link stays a part of its pass", "[schedule][exchange]") {
  Chain world(KernelKind::normalization, 2);
  const Replayed run = replay(world, grouped({{0, 1, 2}}, {{0, 1}}, {2}), ExchangeTasks::where_shared);
  CHECK(run.of_kind(TaskKind::exchange).empty());
  CHECK(run.of_device(0).size() == 3);
}

TEST_CASE("a group with two stages does not meet itself", "[schedule][exchange]") {
  Chain world(KernelKind::normalization, 2);
  const PlanCost cost = cost_plan(world.problem, grouped({{0}, {1, 2}}, {{0, 1}, {0, 1}}, {2, 2}));
  const Schedule chunks = test::schedule_of("interleaved", 1, 2, 2);
  const auto exchanges = [&](ExchangeTasks which) {
    const TaskGraph graph =
        make_task_graph({.cost = cost, .schedule = chunks, .router = world.router, .exchanges = which});
    return std::count_if(graph.work.begin(), graph.work.end(),
                         [&](std::int32_t work) { return graph.works[work].kind == TaskKind::exchange; });
  };
  CHECK(exchanges(ExchangeTasks::where_shared) == 0);
  CHECK(exchanges(ExchangeTasks::all) > 0);
}

// Two replicas of two devices reduce their gradients in two buckets of 30 B: the last backward is divided where
// operator 2's gradient of the weights is complete, after which its input's is added up.
TEST_CASE("a last backward in several parts exchanges in each what is its own", "[schedule][exchange]") {
  Chain world(KernelKind::normalization, 4, Bytes{30});
  const Plan plan = grouped({{0, 1, 2}}, {{0, 1, 2, 3}}, {2});
  REQUIRE(cost_plan(world.problem, plan).stages[0].buckets.size() == 2);
  const Replayed whole = replay(world, plan, ExchangeTasks::none);
  const Replayed all = replay(world, plan, ExchangeTasks::all);
  CHECK(all.metrics.iteration.value == near(whole.metrics.iteration.value));
  check_times(all.of_kind(TaskKind::all_reduce), whole.of_kind(TaskKind::all_reduce));
  CHECK(all.of_kind(TaskKind::exchange).size() == 6); // three of each replica
}

TEST_CASE("memory is taken by the first step of a pass and given back by the last", "[schedule][exchange]") {
  Chain world(KernelKind::normalization, 2);
  const Plan plan = grouped({{0, 1, 2}}, {{0, 1}}, {2});
  const Replayed whole = replay(world, plan, ExchangeTasks::none, replay_analytic, {}, 2);
  const Replayed all = replay(world, plan, ExchangeTasks::all, replay_analytic, {}, 2);
  CHECK(all.metrics.peak_memory[0].value == near(whole.metrics.peak_memory[0].value));
  CHECK(all.graph.works[all.graph.work[all.graph.program_of(0)[0]]].acquire.value > 0);
  CHECK(all.graph.works[all.graph.work[all.graph.program_of(0)[1]]].acquire.value == 0);
}

} // namespace
} // namespace stagecraft
