// Metrics of small runs by hand, and laws over all schedules.
// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "sim/timeline/memory.hpp"
#include "sim/timeline/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/schedule/random_pipelines.hpp"

namespace stagecraft {
namespace {

using test::near;

// Two stages, two micro-batches under 1F1B; F = 1 and 2, B = 2 and 3, steps of 0.5, tensors of 4 B at 4 B/s.
//   device 0: F0 0-1  F1 1-2                B0 8-10           B1 13-15  step 15-15.5
//   device 1:         F0 2-4  B0 4-7  F1 7-9  B1 9-12                   step 15-15.5
// F0's output is under way 1-2, F1's 2-3; the gradients 7-8 and 12-13.
struct Example {
  Platform platform;
  PlanCost cost;
  TaskGraph graph;
  Timeline timeline;

  Example() {
    DeviceType type;
    type.idle = Watts{10};
    type.busy = Watts{110};
    type.price.rate = DollarsPerSecond{2};
    platform = make_star_platform(type, 3, BytesPerSecond{4}, Seconds{0});
    platform.nodes[0].host.idle = Watts{7};
    platform.nodes[0].host.price.rate = DollarsPerSecond{0.5};
    const test::Pipeline pipeline{{{1, 2, 0, 0.5}, {2, 3, 0, 0.5}}, 2, {4}, 4, 0};
    cost = test::cost_of(pipeline);
    for (StageCost& stage : cost.stages) {
      stage.replicas[0].memory.weights = Bytes{1000};
      stage.replicas[0].memory.per_micro_batch = Bytes{30};
    }
    Router router(platform);
    const Schedule schedule = test::schedule_of("1f1b", 2, 2);
    graph = make_task_graph({.cost = cost, .schedule = schedule, .router = router});
    const ReplayRequest request{graph, platform};
    timeline = replay_analytic(std::span(&request, 1)).front();
  }
};

TEST_CASE("metrics of a small run", "[timeline][metrics]") {
  const Example run;
  const Metrics metrics = measure(run.graph, run.timeline, run.platform);
  CHECK(metrics.iteration.value == near(15.5));
  CHECK(metrics.makespan.value == near(15.5));
  REQUIRE(metrics.busy.size() == 2); // the third device is not in use
  CHECK(metrics.busy[0].value == near(6.5));
  CHECK(metrics.busy[1].value == near(10.5));
  CHECK(metrics.waiting[0].value == near(9));
  CHECK(metrics.waiting[1].value == near(5));
  CHECK(metrics.bubble_fraction == near(1 - 17 / (2 * 15.5)));
  CHECK(metrics.load_imbalance == near(10.5 / 8.5 - 1));
  CHECK(metrics.tasks == 2 * 2 * 2 + 2 * 2 + 2); // F and B, transfers, steps
}

TEST_CASE("exposed communication is waiting for data that is already being sent", "[timeline][metrics]") {
  // Device 0 waits 2-8, the gradient is under way 7-8; and 10-13, 12-13. Device 1 waits from the start for its first
  // activation, which is under way 1-2; then it waits for nothing that is under way.
  const Example run;
  const Metrics metrics = measure(run.graph, run.timeline, run.platform);
  CHECK(metrics.exposed[0].value == near(2));
  CHECK(metrics.exposed[1].value == near(1));
}

TEST_CASE("waiting for an all-reduce is exposed communication", "[timeline][metrics]") {
  // Two replicas, F = B = 1: gradients of 8 B go round at 4 B/s in 2 (1/2) 8 / 4 = 2 s, from 2 to 4.
  PlanCost cost;
  StageCost& stage = cost.stages.emplace_back();
  stage.gradients = Bytes{8};
  for (const DeviceId device : {0, 1}) {
    ReplicaCost replica;
    replica.device = device;
    replica.share = 0.5;
    replica.forward = replica.backward_input = Seconds{1};
    stage.replicas.push_back(replica);
  }
  const Platform platform = make_star_platform({}, 2, BytesPerSecond{4}, Seconds{0});
  Router router(platform);
  const Schedule schedule = test::schedule_of("accumulate", 1, 1);
  for (const bool barrier : {true, false}) {
    const TaskGraph graph = make_task_graph({.cost = cost, .schedule = schedule, .router = router, .barrier = barrier});
    const ReplayRequest request{graph, platform};
    const Timeline timeline = replay_analytic(std::span(&request, 1)).front();
    const Metrics metrics = measure(graph, timeline, platform);
    CHECK(metrics.iteration.value == near(4));
    CHECK(metrics.exposed[0].value == near(2));
    CHECK(metrics.exposed[1].value == near(2));
  }
}

TEST_CASE("energy and money of a small run", "[timeline][metrics]") {
  const Example run;
  const Metrics metrics = measure(run.graph, run.timeline, run.platform);
  CHECK(metrics.energy.devices_idle.value == near(2 * 10 * 15.5)); // both devices in use, all the time
  CHECK(metrics.energy.devices_dynamic.value == near(100 * 17));
  CHECK(metrics.energy.devices_waiting.value == near(0.35 * 100 * (9 + 5))); // by the rule
  CHECK(metrics.energy.hosts_idle.value == near(7 * 15.5));                  // their node once
  CHECK(metrics.energy.total().value == near(2 * 10 * 15.5 + 35 * 14 + 100 * 17 + 7 * 15.5));
  CHECK(metrics.cost.value == near((2 * 2 + 0.5) * 15.5));
  CHECK(metrics.assumed_cost.value == 0);
}

TEST_CASE("the part of the cost that rests on assumed prices", "[timeline][metrics]") {
  Example run;
  run.platform.nodes[0].host.price.assumed = true;
  CHECK(measure(run.graph, run.timeline, run.platform).assumed_cost.value == near(0.5 * 15.5));
  run.platform.types[0].price.assumed = true;
  CHECK(measure(run.graph, run.timeline, run.platform).assumed_cost.value == near(4.5 * 15.5));
}

TEST_CASE("a device that waits draws its waiting power", "[timeline][metrics][energy]") {
  Example run; // waiting 9 s and 5 s
  run.platform.types[0].waiting = Watts{30};
  const Metrics metrics = measure(run.graph, run.timeline, run.platform);
  CHECK(metrics.energy.devices_idle.value == near(2 * 10 * 15.5));
  CHECK(metrics.energy.devices_waiting.value == near((30 - 10) * (9 + 5)));
  CHECK(metrics.energy.devices_dynamic.value == near(100 * 17));
  run.platform.types[0].waiting = run.platform.types[0].idle;
  CHECK(measure(run.graph, run.timeline, run.platform).energy.devices_waiting.value == 0);
}

// A quarter of each forward, and half of each step.
TEST_CASE("a device whose host is late computes nothing, and draws idle power", "[timeline][metrics][energy]") {
  Example run;
  for (Work& work : run.graph.works) {
    work.at_rest = work.kind == TaskKind::forward ? 0.25 : work.kind == TaskKind::optimizer ? 0.5 : 0;
  }
  const Metrics metrics = measure(run.graph, run.timeline, run.platform);
  CHECK(metrics.at_rest[0].value == near(0.25 * 2 + 0.5 * 0.5));
  CHECK(metrics.at_rest[1].value == near(0.25 * 4 + 0.5 * 0.5));
  CHECK(metrics.busy[0].value == near(6.5));
  CHECK(metrics.energy.devices_dynamic.value == near(100 * (17 - 0.75 - 1.25)));
}

TEST_CASE("links draw power while they stand and more while data flows", "[timeline][metrics][energy]") {
  // Two activations and two gradients of 4 B at 4 B/s over two links each: four links are full for 2 s each. The third
  // device's links are not in use, and do not count.
  Example run;
  REQUIRE(run.platform.links.size() == 6);
  for (Link& link : run.platform.links) {
    link.idle = Watts{3};
    link.busy = Watts{8};
  }
  const Metrics metrics = measure(run.graph, run.timeline, run.platform);
  CHECK(metrics.energy.links_idle.value == near(4 * 3 * 15.5));
  CHECK(metrics.energy.links_dynamic.value == near(4 * 2 * (8 - 3)));
  CHECK(metrics.energy.total().value ==
        near(2 * 10 * 15.5 + 35 * 14 + 100 * 17 + 7 * 15.5 + 4 * 3 * 15.5 + 4 * 2 * (8 - 3)));
}

TEST_CASE("memory peaks where most micro-batches are held", "[timeline][memory]") {
  const Example run;
  const Metrics metrics = measure(run.graph, run.timeline, run.platform);
  CHECK(metrics.peak_memory[0].value == 1000 + 2 * 30);
  CHECK(metrics.peak_memory[1].value == 1000 + 30);
  CHECK(run.graph.micro_batch[metrics.peak_task[0]] == 1); // F1
  const std::vector<MemoryStep> steps = memory_over_time(run.graph, run.timeline, 0).steps;
  REQUIRE(steps.size() == 5);
  const std::vector<std::pair<double, double>> expected = {{0, 1000}, {0, 1030}, {1, 1060}, {10, 1030}, {15, 1000}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(steps[i].time == near(expected[i].first));
    CHECK(steps[i].bytes.value == expected[i].second);
  }
}

TEST_CASE("memory over time, part by part", "[timeline][memory]") {
  Example run;
  for (StageCost& stage : run.cost.stages) {
    stage.replicas[0].memory.gradients = Bytes{200};
    stage.replicas[0].memory.optimizer = Bytes{400};
    stage.replicas[0].memory.buffers = Bytes{8};
  }
  Router router(run.platform);
  Schedule schedule = test::schedule_of("1f1b", 2, 2);
  schedule.versions = {3, 1};
  run.graph = make_task_graph({.cost = run.cost, .schedule = schedule, .router = router});
  const MemoryUse use = memory_over_time(run.graph, run.timeline, 0);
  CHECK(use.fixed.weights.value == 3 * 1000);
  CHECK(use.fixed.gradients.value == 200);
  CHECK(use.fixed.optimizer.value == 400);
  CHECK(use.fixed.buffers.value == 8);
  CHECK(use.peak.bytes.value == 3608 + 2 * 30);
  CHECK(use.peak.time == near(1)); // F1 starts
  CHECK(run.graph.micro_batch[use.peak.task] == 1);
  REQUIRE(use.stashes.size() == 2); // from the start of F until the end of B
  CHECK(use.stashes[0].from == near(0));
  CHECK(use.stashes[0].to == near(10));
  CHECK(use.stashes[1].from == near(1));
  CHECK(use.stashes[1].to == near(15));
  const std::vector<int> in_flight = {0, 1, 2, 1, 0};
  REQUIRE(use.steps.size() == in_flight.size());
  for (std::size_t i = 0; i < in_flight.size(); ++i) {
    CHECK(use.steps[i].in_flight == in_flight[i]);
    CHECK(use.steps[i].stashed.value == 30 * in_flight[i]);
    CHECK(use.steps[i].recompute.value == 0);
    CHECK(use.steps[i].bytes.value == 3608 + 30 * in_flight[i]);
  }
}

// Two stages whose pipeline never runs dry: device 0 is two micro-batches ahead, so that two stand when an iteration
// begins and none is added before one is done.
TEST_CASE("memory where iterations overlap counts what earlier ones left", "[timeline][memory]") {
  const Example run;
  Schedule schedule = test::schedule_of("1f1b", 2, 2);
  schedule.flushes = false;
  using enum TaskKind;
  schedule.orders = {{{backward, 0, 0}, {forward, 2, 0}, {backward, 1, 0}, {forward, 3, 0}},
                     {{forward, 0, 1}, {backward, 0, 1}, {forward, 1, 1}, {backward, 1, 1}}};
  Router router(run.platform);
  const TaskGraph graph = make_task_graph({.cost = run.cost, .schedule = schedule, .router = router, .barrier = false});
  const ReplayRequest request{graph, run.platform, 3};
  const Timeline timeline = replay_analytic(std::span(&request, 1)).front();
  const Metrics metrics = measure(graph, timeline, run.platform);
  for (std::size_t device = 0; device < 2; ++device) {
    const MemoryUse use = memory_over_time(graph, timeline, device);
    const int held = most_held(schedule)[device];
    CHECK(held == (device == 0 ? 2 : 1));
    CHECK(use.peak.bytes.value == 1000 + 30 * held);
    CHECK(metrics.peak_memory[device].value == 1000 + 30 * held);
    CHECK(use.steps.front().in_flight == (device == 0 ? 2 : 0));
    CHECK(use.steps.back().in_flight == use.steps.front().in_flight);
  }
}

TEST_CASE("recompute keeps the input and brings the rest back for one micro-batch", "[timeline][memory]") {
  // 2 B of input per micro-batch, 9 B of activations; GPipe holds three inputs when the first R comes.
  PlanCost cost;
  ReplicaCost replica;
  replica.forward = replica.backward_input = replica.recompute = Seconds{1};
  replica.memory.per_micro_batch = replica.memory.read_again = Bytes{2};
  replica.memory.workspace = Bytes{9};
  cost.stages.push_back({.replicas = {replica}});
  const Platform platform = make_star_platform({}, 1, BytesPerSecond{1}, Seconds{0});
  Router router(platform);
  const std::vector<char> all = {1};
  const auto peak = [&](const RecomputeRule& rule) {
    const Schedule schedule = add_recompute(test::schedule_of("gpipe", 1, 3), all, rule);
    const TaskGraph graph = make_task_graph({.cost = cost, .schedule = schedule, .router = router});
    const ReplayRequest request{graph, platform};
    const Timeline timeline = replay_analytic(std::span(&request, 1)).front();
    return measure(graph, timeline, platform).peak_memory[0].value;
  };
  CHECK(peak({}) == 3 * 2 + 9);
  // The last one kept: two inputs and its 9 B; when it is done, two inputs and 9 B brought back.
  CHECK(peak({.except_last_micro_batch = true}) == 2 * 2 + 9);
}

TEST_CASE("B frees what W does not need", "[timeline][memory]") {
  // One stage runs F0 B0 F1 B1 W0 W1 on activations of 10 B, one second each.
  Schedule schedule{.stages = 1, .micro_batches = 2, .splits_backward = true};
  schedule.orders = {{{TaskKind::forward, 0, 0},
                      {TaskKind::backward, 0, 0},
                      {TaskKind::forward, 1, 0},
                      {TaskKind::backward, 1, 0},
                      {TaskKind::weight, 0, 0},
                      {TaskKind::weight, 1, 0}}};
  const Platform platform = make_star_platform({}, 1, BytesPerSecond{1}, Seconds{0});
  Router router(platform);
  struct Case {
    std::optional<Bytes> for_weights;
    bool recomputes;
    std::vector<double> levels; // after each change
  };
  const std::vector<Case> cases = {
      {std::nullopt, false, {0, 10, 20, 10, 0}},
      {Bytes{4}, false, {0, 10, 4, 14, 8, 4, 0}},
      {Bytes{0}, false, {0, 10, 0, 10, 0}},
      {Bytes{13}, false, {0, 10, 13, 23, 26, 13, 0}}, // gradients of outputs outweigh what B frees
      // 2 B of input, all 10 brought back by R; B leaves 4.
      {Bytes{4}, true, {0, 2, 12, 4, 6, 16, 8, 4, 0}},
  };
  for (const Case& one : cases) {
    PlanCost cost;
    ReplicaCost replica;
    replica.forward = replica.backward_input = replica.backward_weight = replica.recompute = Seconds{1};
    replica.memory.for_weights = one.for_weights;
    replica.memory.per_micro_batch = Bytes{one.recomputes ? 2.0 : 10.0};
    replica.memory.read_again = Bytes{one.recomputes ? 2.0 : 0.0};
    replica.memory.workspace = Bytes{one.recomputes ? 10.0 : 0.0};
    cost.stages.push_back({.replicas = {replica}});
    const std::vector<char> all = {static_cast<char>(one.recomputes ? 1 : 0)};
    const Schedule order = add_recompute(schedule, all, {});
    const TaskGraph graph = make_task_graph({.cost = cost, .schedule = order, .router = router});
    const ReplayRequest request{graph, platform};
    const Timeline timeline = replay_analytic(std::span(&request, 1)).front();
    const MemoryUse use = memory_over_time(graph, timeline, 0);
    std::vector<double> levels;
    for (const MemoryStep& step : use.steps) {
      levels.push_back(step.bytes.value);
    }
    CHECK(levels == one.levels);
    CHECK(use.peak.bytes.value == *std::max_element(levels.begin(), levels.end()));
    CHECK(measure(graph, timeline, platform).peak_memory[0] == use.peak.bytes);
    CHECK(use.steps.back().in_flight == 0);
  }
}

TEST_CASE("memory is never below what is fixed, ends where it began, and peaks as measured", "[timeline][memory]") {
  std::mt19937 random(51);
  for (const ScheduleRow& row : schedules()) {
    for (int n = 0; n < 30; ++n) {
      const test::RandomCase one = test::random_case(row, random);
      auto [cost, rank_of] = test::placed(one.pipeline, one.schedule);
      for (StageCost& stage : cost.stages) {
        stage.replicas[0].memory.weights = Bytes{100};
        stage.replicas[0].memory.per_micro_batch = Bytes{static_cast<double>(test::pick(random, 1, 50))};
        stage.replicas[0].memory.workspace = Bytes{static_cast<double>(test::pick(random, 50, 90))};
      }
      const bool recomputes = n % 2 == 1;
      std::vector<char> which(cost.stages.size());
      for (char& flag : which) {
        flag = static_cast<char>(recomputes ? test::pick(random, 0, 1) : 0);
      }
      for (std::size_t s = 0; s < which.size(); ++s) { // without recompute there is no workspace
        StageMemory& memory = cost.stages[s].replicas[0].memory;
        memory.workspace = which[s] != 0 ? memory.workspace : Bytes{0};
        for (ReplicaCost& replica : cost.stages[s].replicas) {
          replica.memory = memory;
        }
      }
      const RecomputeRule rule{.skip_after_own_forward = n % 4 == 1, .except_last_micro_batch = n % 8 == 3};
      const Schedule schedule = from_empty(add_recompute(one.schedule, which, rule));
      const Platform platform = test::star_of(one.pipeline);
      Router router(platform);
      const TaskGraph graph =
          make_task_graph({.cost = cost, .schedule = schedule, .router = router, .barrier = false, .rank_of = rank_of});
      const ReplayRequest request{graph, platform};
      const Timeline timeline = replay_analytic(std::span(&request, 1)).front();
      const Metrics metrics = measure(graph, timeline, platform);
      for (std::size_t device = 0; device < graph.devices.size(); ++device) {
        const MemoryUse use = memory_over_time(graph, timeline, device);
        const std::vector<MemoryStep>& steps = use.steps;
        const double fixed = graph.fixed_memory[device].total().value;
        double low = fixed;
        double peak = fixed;
        for (std::size_t i = 0; i < steps.size(); ++i) {
          low = std::min(low, steps[i].bytes.value);
          peak = std::max(peak, steps[i].bytes.value);
          CHECK(steps[i].bytes.value == fixed + steps[i].stashed.value + steps[i].recompute.value);
          CHECK((i == 0 || steps[i].time >= steps[i - 1].time));
        }
        CAPTURE(row.name, n);
        // The peak is the first of the highest steps, with or without the others.
        const auto first =
            std::find_if(steps.begin(), steps.end(), [&](const MemoryStep& step) { return step.bytes.value == peak; });
        const MemoryUse alone = peak_memory(graph, timeline, device);
        CHECK((alone.steps.empty() && alone.stashes.empty()));
        for (const MemoryPeak& one_peak : {use.peak, alone.peak}) {
          CHECK(one_peak.bytes == first->bytes);
          CHECK(one_peak.time == first->time);
          CHECK(one_peak.stashed == first->stashed);
          CHECK(one_peak.recompute == first->recompute);
          CHECK(one_peak.in_flight == first->in_flight);
          CHECK(one_peak.task == use.peak.task);
        }
        CHECK(low == fixed);
        CHECK(steps.back().bytes.value == fixed);
        CHECK(peak == metrics.peak_memory[device].value);
      }
    }
  }
}

TEST_CASE("busy and waiting make up the iteration, and fractions lie between 0 and 1", "[timeline][metrics]") {
  std::mt19937 random(52);
  for (const ScheduleRow& row : schedules()) {
    for (int n = 0; n < 30; ++n) {
      const test::RandomCase one = test::random_case(row, random);
      const test::PipelineRun run = test::run(one.pipeline, one.schedule, {.iterations = 3, .barrier = one.barrier});
      const Metrics metrics = measure(run.graph, run.timeline, run.platform);
      double busy = 0;
      for (std::size_t device = 0; device < metrics.busy.size(); ++device) {
        CHECK(metrics.busy[device].value + metrics.waiting[device].value == near(metrics.iteration.value));
        CHECK(metrics.exposed[device].value >= 0);
        busy += metrics.busy[device].value;
      }
      const double devices = static_cast<double>(metrics.busy.size());
      CHECK(metrics.bubble_fraction == near(1 - busy / (devices * metrics.iteration.value)));
      if (one.barrier) { // the last of a few local iterations need not be steady
        CHECK(metrics.bubble_fraction >= -1e-9);
      }
      CHECK(metrics.load_imbalance >= -1e-9);
    }
  }
}

TEST_CASE("with a barrier every iteration lasts as long as the first", "[timeline][metrics]") {
  std::mt19937 random(53);
  for (const ScheduleRow& row : schedules()) {
    test::RandomCase one = test::random_case(row, random);
    if (!one.schedule.flushes) {
      continue; // without a flush there is no barrier
    }
    for (test::StageTimes& stage : one.pipeline.stages) {
      stage.optimizer = 0.5; // equal steps: all stages begin again together
    }
    const test::PipelineRun run = test::run(one.pipeline, one.schedule, {.iterations = 3, .barrier = true});
    const Metrics metrics = measure(run.graph, run.timeline, run.platform);
    CHECK(metrics.iteration.value == near(metrics.makespan.value));
  }
}

TEST_CASE("the busiest link is the one with most bytes for its bandwidth", "[timeline][links]") {
  const Example run;
  // 8 B go each way; links are: device 0 up, down, device 1 up, down, …: each is busy 2 s of 15.5.
  const BusiestLink equal = busiest_link(run.graph, run.platform, Seconds{15.5});
  CHECK(equal.link == 0);
  CHECK(equal.share == near(2 / 15.5));
  Platform slow_way_back = run.platform;
  slow_way_back.links[2].bandwidth = BytesPerSecond{2}; // out of device 1: the gradients
  const BusiestLink gradients = busiest_link(run.graph, slow_way_back, Seconds{15.5});
  CHECK(gradients.link == 2);
  CHECK(gradients.share == near(4 / 15.5));
}

TEST_CASE("without transfers there is no busiest link", "[timeline][links]") {
  const test::PipelineRun run = test::run(test::equal_stages(1, 1, {1, 1, 1}), test::schedule_of("1f1b", 1, 2));
  CHECK(busiest_link(run.graph, run.platform, Seconds{4}).link == -1);
}

} // namespace
} // namespace stagecraft
