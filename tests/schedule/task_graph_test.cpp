// The task graph: what is sent where, resharding between replica groups, all-reduce rings, memory that tasks hold.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>
#include <numeric>

#include "sim/replay/replay.hpp"
#include "sim/schedule/task_graph/add_edges.hpp"
#include "sim/timeline/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/collective/clusters.hpp"
#include "tests/schedule/pipelines.hpp"
#include "tests/schedule/random_pipelines.hpp"

namespace stagecraft {
namespace {

using test::near;

// Stages on the groups of devices given, equal shares, `bytes` across each boundary.
PlanCost grouped(const std::vector<std::vector<DeviceId>>& groups, double bytes, double gradients) {
  PlanCost cost;
  for (std::size_t s = 0; s < groups.size(); ++s) {
    StageCost& stage = cost.stages.emplace_back();
    stage.gradients = Bytes{gradients};
    for (const DeviceId device : groups[s]) {
      ReplicaCost replica;
      replica.device = device;
      replica.share = 1.0 / static_cast<double>(groups[s].size());
      replica.forward = replica.backward_input = Seconds{1};
      stage.replicas.push_back(replica);
    }
    if (s > 0) {
      cost.edges.push_back({static_cast<int>(s) - 1, static_cast<int>(s), Bytes{bytes}});
    }
  }
  return cost;
}

TaskGraph graph_of(const PlanCost& cost, int devices, int micro_batches, double latency = 0) {
  const Platform platform = make_star_platform({}, devices, BytesPerSecond{10}, Seconds{latency});
  Router router(platform);
  const Schedule schedule = test::schedule_of("1f1b", static_cast<int>(cost.stages.size()), micro_batches);
  return make_task_graph({.cost = cost, .schedule = schedule, .router = router});
}

// Bytes per (sender's device, stage sent to), for one micro-batch.
std::map<std::pair<DeviceId, int>, double> sent(const TaskGraph& graph, TaskKind kind) {
  std::map<std::pair<DeviceId, int>, double> bytes;
  for (const Work& work : graph.works) {
    if (work.transfers() && work.kind == kind) {
      bytes[{graph.devices[work.device], work.to_stage}] += work.bytes;
    }
  }
  return bytes;
}

TEST_CASE("a pipeline's graph has one transfer per boundary, direction and micro-batch", "[schedule][graph]") {
  for (const int p : {1, 2, 5}) {
    for (const int m : {1, 4}) {
      std::vector<std::vector<DeviceId>> groups;
      for (int s = 0; s < p; ++s) {
        groups.push_back({s});
      }
      const TaskGraph graph = graph_of(grouped(groups, 10, 0), p, m);
      // F and B on each stage, activation and gradient over each boundary, an optimiser step per stage.
      CHECK(graph.executed() == 2 * p * m + 2 * (p - 1) * m + p);
      CHECK(graph.joins == 1); // the barrier
      CHECK(graph.devices.size() == static_cast<std::size_t>(p));
    }
  }
}

TEST_CASE("edges are counted alike from both ends", "[schedule][graph]") {
  std::mt19937 random(3);
  for (const ScheduleRow& row : schedules()) {
    for (int n = 0; n < 20; ++n) {
      const test::RandomCase one = test::random_case(row, random);
      const TaskGraph graph = test::run(one.pipeline, one.schedule).graph;
      std::vector<std::int32_t> waits(graph.tasks(), 0);
      for (TaskId task = 0; task < graph.tasks(); ++task) {
        for (const TaskId next : graph.successors_of(task)) {
          ++waits[next];
        }
      }
      CHECK(waits == graph.waits);
    }
  }
}

TEST_CASE("a work counts its tasks wherever they stand", "[schedule][graph]") {
  TaskGraph graph;
  graph.works.resize(3);
  CHECK(graph.tasks_per_work() == std::vector<std::int32_t>{0, 0, 0});
  graph.work = {0, 1, 1, 0, 1};
  CHECK(graph.tasks_per_work() == std::vector<std::int32_t>{2, 3, 0});
}

TEST_CASE("data of a micro-batch stays with it", "[schedule][graph]") {
  std::mt19937 random(4);
  for (const ScheduleRow& row : schedules()) {
    for (int n = 0; n < 20; ++n) {
      const test::RandomCase one = test::random_case(row, random);
      const TaskGraph graph = test::run(one.pipeline, one.schedule).graph;
      const auto has_fused = [](const std::vector<Action>& order) {
        return std::any_of(order.begin(), order.end(), [](const Action& action) { return action.fused; });
      };
      const bool fuses = std::any_of(one.schedule.orders.begin(), one.schedule.orders.end(), has_fused);
      for (TaskId task = 0; task < graph.tasks(); ++task) {
        for (const TaskId next : graph.successors_of(task)) {
          const Work& work = graph.works[graph.work[next]];
          CHECK((fuses || work.kind != TaskKind::transfer || graph.micro_batch[next] == graph.micro_batch[task]));
        }
      }
    }
  }
}

// 0 -> 2 stays first of 0's; what is added follows in the order given.
TEST_CASE("edges are added to a graph that has some or none", "[schedule][graph]") {
  TaskGraph graph;
  graph.work = {0, 0, 0};
  add_edges(graph, std::vector<Edge>{{0, 2}});
  CHECK(graph.successor_begin == std::vector<std::int32_t>{0, 1, 1, 1});
  add_edges(graph, std::vector<Edge>{{1, 2}, {0, 1}});
  CHECK(graph.successor_begin == std::vector<std::int32_t>{0, 2, 3, 3});
  CHECK(graph.successors == std::vector<TaskId>{2, 1, 2});
  CHECK(graph.waits == std::vector<std::int32_t>{0, 1, 2});
}

TEST_CASE("a micro-batch is dealt out anew between groups of unequal size", "[schedule][graph][resharding]") {
  // Two replicas hold [0, 1/2) and [1/2, 1) of 600 B; three take thirds. Device 0 sends 200 to the first and 100 to the
  // second, device 1 sends 100 to the second and 200 to the third; gradients go back the same ways.
  const TaskGraph graph = graph_of(grouped({{0, 1}, {2, 3, 4}}, 600, 0), 5, 1);
  int transfers = 0;
  for (const Work& work : graph.works) {
    transfers += work.transfers() && work.kind == TaskKind::transfer ? 1 : 0;
  }
  CHECK(transfers == 8);
  const auto bytes = sent(graph, TaskKind::transfer);
  CHECK(bytes.at({0, 1}) == 300);
  CHECK(bytes.at({1, 1}) == 300);
  CHECK(bytes.at({2, 0}) == 200);
  CHECK(bytes.at({3, 0}) == 200);
  CHECK(bytes.at({4, 0}) == 200);
}

TEST_CASE("dealing out anew keeps all bytes, for any groups and shares", "[schedule][graph][resharding]") {
  std::mt19937 random(5);
  for (int n = 0; n < 200; ++n) {
    const int from = test::pick(random, 1, 4);
    const int to = test::pick(random, 1, 4);
    std::vector<std::vector<DeviceId>> groups(2);
    for (int d = 0; d < from + to; ++d) {
      groups[d < from ? 0 : 1].push_back(d);
    }
    const double bytes = 1000.0 * test::pick(random, 1, 1000);
    PlanCost cost = grouped(groups, bytes, 0);
    for (StageCost& stage : cost.stages) {
      double sum = 0;
      for (ReplicaCost& replica : stage.replicas) {
        replica.share = test::pick(random, 1, 9);
        sum += replica.share;
      }
      for (ReplicaCost& replica : stage.replicas) {
        replica.share /= sum;
      }
    }
    double forward = 0;
    for (const auto& [ends, amount] : sent(graph_of(cost, from + to, 1), TaskKind::transfer)) {
      forward += ends.second == 1 ? amount : 0;
    }
    CHECK(forward == Approx(bytes).margin(from + to)); // each transfer is rounded to whole bytes
  }
}

TEST_CASE("devices that hold both sides of a boundary send nothing to themselves", "[schedule][graph][resharding]") {
  using enum TaskKind;
  const PlanCost cost = grouped({{0}, {0}}, 600, 0);
  const Platform platform = make_star_platform({}, 1, BytesPerSecond{1}, Seconds{0});
  Router router(platform);
  const Schedule schedule{.name = "by hand",
                          .stages = 2,
                          .micro_batches = 1,
                          .orders = {{{forward, 0, 0}, {forward, 0, 1}, {backward, 0, 1}, {backward, 0, 0}}}};
  REQUIRE(schedule_defects(schedule).empty());
  CHECK(make_task_graph({.cost = cost, .schedule = schedule, .router = router}).legs.empty());
}

TEST_CASE("the gradients of r replicas go round a ring", "[schedule][graph][all-reduce]") {
  const bool hop_by_hop = GENERATE(false, true); // one coupled flow; or a transfer for each neighbour, as real runs do
  for (const int r : {2, 3, 4, 8}) {
    std::vector<DeviceId> group(r);
    std::iota(group.begin(), group.end(), 0);
    const PlanCost cost = grouped({group}, 0, 840);
    const Platform platform = make_star_platform({}, r, BytesPerSecond{10}, Seconds{0.25});
    Router router(platform);
    const Schedule schedule = test::schedule_of("1f1b", 1, 1);
    const TaskGraph graph = make_task_graph(
        {.cost = cost, .schedule = schedule, .router = router, .all_reduce = hop_by_hop ? kHopByHop.name : "ring"});
    int sends = 0;
    for (const Work& work : graph.works) {
      if (work.transfers()) {
        ++sends;
        CHECK(work.bytes == near(2.0 * (r - 1) / r * 840));    // Patarasuk, Yuan 2009
        CHECK(work.latency.value == near(2 * (r - 1) * 0.25)); // 2 (r-1) steps follow one another
      }
    }
    CHECK(sends == (hop_by_hop ? r : 1));
    CHECK(graph.executed() == 3 * r + sends); // F, B and a step on each
  }
}

// ZeRO 1: gradients are reduced to each replica's part, and what its step makes of the part is gathered, before the
// stage's first forward of the next iteration: (r-1)/r of the bytes each time, in r-1 steps.
TEST_CASE("replicas that share the optimiser scatter gradients and gather parameters",
          "[schedule][graph][all-reduce]") {
  const bool hop_by_hop = GENERATE(false, true);
  constexpr int r = 4;
  PlanCost cost = grouped({{0, 1, 2, 3}}, 0, 840);
  cost.stages[0].zero = Zero::states;
  cost.stages[0].sharing = r;
  for (ReplicaCost& replica : cost.stages[0].replicas) {
    replica.memory.weights = Bytes{420};
    replica.optimizer = Seconds{1};
  }
  const Platform platform = make_star_platform({}, r, BytesPerSecond{10}, Seconds{0.25});
  Router router(platform);
  const Schedule schedule = test::schedule_of("1f1b", 1, 2);
  const TaskGraph graph = make_task_graph({.cost = cost,
                                           .schedule = schedule,
                                           .router = router,
                                           .all_reduce = hop_by_hop ? kHopByHop.name : "ring",
                                           .sharding = {.zero = Zero::states}});
  std::map<TaskKind, int> sends;
  for (const Work& work : graph.works) {
    if (work.transfers()) {
      ++sends[work.kind];
      const double buffer = work.kind == TaskKind::reduce_scatter ? 840 : 420;
      CHECK(work.bytes == near(0.75 * buffer));
      CHECK(work.latency.value == near(3 * 0.25));
    }
  }
  const int each = hop_by_hop ? r : 1;
  CHECK(sends == std::map<TaskKind, int>{{TaskKind::reduce_scatter, each}, {TaskKind::all_gather, each}});
  CHECK(graph.ties.size() == r); // the first forward of each replica
  for (const Tie& tie : graph.ties) {
    CHECK(graph.works[graph.work[tie.to]].kind == TaskKind::forward);
    CHECK(graph.micro_batch[tie.to] == 0);
    CHECK(tie.iterations == 1);
  }
  // F and B of two micro-batches, 63 B at 10 B/s and 0.75 s, a step, 31.5 B: 2 (1 + 1) + 63.75 + 1 + 32.25 s.
  const ReplayRequest request{graph, platform, 4};
  const Timeline timeline = replay_analytic({&request, 1}).front();
  CHECK(measure(graph, timeline, platform).iteration.value == near(4 + 63 + 0.75 + 1 + 31.5 + 0.75));
}

TEST_CASE("gradients of replicas below one switch take the time measured for them", "[schedule][graph][all-reduce]") {
  const Platform platform = test::cluster({1, 4, "node", "1 us", false, "10 GB/s"});
  Router router(platform);
  const Schedule schedule = test::schedule_of("1f1b", 1, 1);
  for (const int replicas : {2, 4}) {
    for (const double gradients : {1.0, 123456.789, 98765432.1}) {
      const PlanCost cost = grouped({test::first_devices(replicas)}, 0, gradients);
      const TaskGraph graph = make_task_graph({.cost = cost, .schedule = schedule, .router = router});
      const ReplayRequest request{graph, platform, 2};
      const double measured = test::seconds_of(test::kMeasured[replicas == 2 ? 0 : 1], gradients);
      for (const ReplayFunction engine : {replay_analytic, replay_simgrid, replay_simgrid_full}) {
        const Timeline timeline = engine(std::span(&request, 1)).front();
        CHECK(measure(graph, timeline, platform).iteration.value == Approx(2 + measured).epsilon(1e-11)); // F and B
      }
    }
  }
}

TEST_CASE("a stage without replicas reduces nothing", "[schedule][graph][all-reduce]") {
  CHECK(graph_of(grouped({{0}, {1}}, 0, 840), 2, 1).executed() == 2 * 2 + 2 + 2);
}

TEST_CASE("weight versions and buffers are fixed memory, activations come and go", "[schedule][graph][memory]") {
  PlanCost cost = grouped({{0}}, 0, 0);
  StageMemory& memory = cost.stages[0].replicas[0].memory;
  memory.weights = Bytes{100};
  memory.gradients = Bytes{10};
  memory.optimizer = Bytes{20};
  memory.buffers = Bytes{3};
  memory.per_micro_batch = Bytes{7};
  const Platform platform = make_star_platform({}, 1, BytesPerSecond{1}, Seconds{0});
  Router router(platform);
  Schedule schedule = test::schedule_of("1f1b", 1, 1);
  schedule.versions.assign(schedule.stages, 3);
  const TaskGraph graph = make_task_graph({.cost = cost, .schedule = schedule, .router = router});
  CHECK(graph.fixed_memory[0].total().value == 3 * 100 + 10 + 20 + 3);
  const auto program = graph.program_of(0);
  CHECK(graph.works[graph.work[program[0]]].acquire.value == 7); // F
  CHECK(graph.works[graph.work[program[1]]].release.value == 7); // B
}

TEST_CASE("a recomputed micro-batch holds its input, any other all its activations", "[schedule][graph][memory]") {
  // Per micro-batch an input of 2 B and activations of 9 B in all; the second of two micro-batches is not recomputed.
  PlanCost cost = grouped({{0}}, 0, 0);
  cost.stages[0].replicas[0].memory.per_micro_batch = Bytes{2};
  cost.stages[0].replicas[0].memory.read_again = Bytes{2};
  cost.stages[0].replicas[0].memory.workspace = Bytes{9};
  const Platform platform = make_star_platform({}, 1, BytesPerSecond{1}, Seconds{0});
  Router router(platform);
  const std::vector<char> all = {1};
  for (const std::string_view name : {"gpipe", "zb-h1"}) {
    const Schedule schedule = add_recompute(test::schedule_of(name, 1, 2), all, {.except_last_micro_batch = true});
    const TaskGraph graph = make_task_graph({.cost = cost, .schedule = schedule, .router = router});
    CHECK(graph.fixed_memory[0].total().value == 0);
    std::vector<double> acquired(2, 0.0);
    std::vector<double> released(2, 0.0);
    int held_by_forward = 0;
    for (const TaskId task : graph.program_of(0)) {
      const Work& work = graph.works[graph.work[task]];
      acquired[graph.micro_batch[task]] += work.acquire.value;
      released[graph.micro_batch[task]] += work.release.value;
      held_by_forward += work.kind == TaskKind::forward ? static_cast<int>(work.acquire.value) : 0;
    }
    CHECK(acquired == std::vector<double>{2 + 9, 9});
    CHECK(released == acquired);
    CHECK(held_by_forward == 2 + 9);
  }
}

// Stages 0 and 1 on device 0, which gathers 6 B in either pass of the first and 4 B of the second, into one buffer of 6
// B; each micro-batch keeps 7 B of each. Of two at once four are kept, and 6 B are gathered beside them.
TEST_CASE("what a pass gathers is held while it runs", "[schedule][graph][memory]") {
  PlanCost cost = grouped({{0}, {0}}, 0, 0);
  for (StageCost& stage : cost.stages) {
    stage.replicas[0].memory.per_micro_batch = Bytes{7};
  }
  for (const auto& [stage, bytes] : {std::pair{0, 6}, std::pair{1, 4}}) {
    StageMemory& memory = cost.stages[stage].replicas[0].memory;
    memory.common_buffer = memory.passing = Bytes{static_cast<double>(bytes)};
  }
  const Platform platform = make_star_platform({}, 1, BytesPerSecond{1}, Seconds{0});
  Router router(platform);
  for (const std::string_view name : {"breadth-first", "interleaved", "combined-interleaved"}) {
    CAPTURE(name);
    const Schedule schedule = test::schedule_of(name, 1, 2, 2);
    const TaskGraph graph = make_task_graph({.cost = cost, .schedule = schedule, .router = router});
    CHECK(graph.fixed_memory[0].total().value == 6);
    double held = 0;
    for (const TaskId task : graph.program_of(0)) {
      const Work& work = graph.works[graph.work[task]];
      const double gathered = work.computes() && work.kind != TaskKind::optimizer ? work.stage == 0 ? 6 : 4 : 0;
      CHECK(work.acquire.value == (work.kind == TaskKind::forward ? 7 : 0) + gathered);
      CHECK(work.release.value == (work.kind == TaskKind::backward ? 7 : 0) + gathered);
      held += (work.acquire - work.release).value;
    }
    CHECK(held == 0);
  }
}

TEST_CASE("transfers between stages have a channel per sender and links, reductions none", "[schedule][graph][order]") {
  // Stages on {0, 1} and 2, and back: 0 and 1 send to 2 on a channel each, 2 to each of them on one; over two hops of
  // the star a channel's links are the sender's and the receiver's.
  const PlanCost cost = grouped({{0, 1}, {2}}, 600, 1000);
  TaskGraph graph = graph_of(cost, 3, 4);
  CHECK(graph.channels == 0);
  order_transfers(graph);
  CHECK(graph.channels == 4);
  std::map<std::int32_t, std::pair<std::int32_t, int>> seen; // channel -> sender, works
  for (const Work& work : graph.works) {
    CHECK((work.channel >= 0) == (work.transfers() && work.kind == TaskKind::transfer));
    if (work.channel >= 0) {
      const auto [slot, fresh] = seen.try_emplace(work.channel, work.device, 0);
      CHECK(slot->second.first == work.device);
      ++slot->second.second;
    }
  }
  CHECK(seen.size() == 4);
  const TaskGraph chained = chain_transfers(graph); // a channel's M transfers need M - 1 edges
  CHECK(chained.channels == 0);
  CHECK(chained.successors.size() == graph.successors.size() + 4 * (4 - 1));
}

TEST_CASE("transfers carry whole bytes", "[schedule][graph]") {
  const TaskGraph graph = graph_of(grouped({{0}, {1, 2, 3}}, 1000, 1), 4, 1);
  for (const Work& work : graph.works) {
    CHECK(work.bytes == std::round(work.bytes));
  }
}

TEST_CASE("gradients are reduced bucket by bucket while backward still runs", "[schedule][graph]") {
  // F 0-1, B 1-2; 80 B of gradients go round two replicas at 10 B/s in 8 s. In two halves: the first is there at 1.5
  // and reduced at 5.5, the second waits for it until then and is reduced at 9.5.
  PlanCost cost = grouped({{0, 1}}, 0, 80);
  const auto end = [&] {
    test::PipelineRun run{make_star_platform({}, 2, BytesPerSecond{10}, Seconds{0}), graph_of(cost, 2, 1), {}};
    const ReplayRequest request{run.graph, run.platform};
    run.timeline = replay_simgrid({&request, 1}).front();
    return run.end();
  };
  CHECK(end() == near(10));
  cost.stages[0].buckets = {{0.5, Bytes{40}}, {0.5, Bytes{40}}};
  CHECK(end() == near(9.5));
}

TEST_CASE("a backward's gradient is sent when all its buckets are done", "[schedule][graph]") {
  // The second stage has replicas; its gradient for the first leaves at the end of B, whatever the buckets.
  PlanCost cost = grouped({{0}, {1, 2}}, 0, 20);
  const auto started = [&] {
    const TaskGraph graph = graph_of(cost, 3, 1);
    const Platform platform = make_star_platform({}, 3, BytesPerSecond{10}, Seconds{0});
    const ReplayRequest request{graph, platform};
    const Timeline timeline = replay_analytic({&request, 1}).front();
    return timeline.start[graph.program_of(0)[1]]; // B of the first stage
  };
  CHECK(started() == near(3)); // F 1, F 1, B 1
  cost.stages[1].buckets = {{0.25, Bytes{10}}, {0.75, Bytes{10}}};
  CHECK(started() == near(3));
  const TaskGraph graph = graph_of(cost, 3, 1);
  CHECK(graph.program_of(1).size() == 4); // F, two parts of B, step
}

} // namespace
} // namespace stagecraft
