// Computations that take longer while their device exchanges data: worked by hand, and by the definition over
// schedules.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/replay/beside_exchange.hpp"
#include "sim/replay/engines.hpp"
#include "tests/catch.hpp"
#include "tests/schedule/random_pipelines.hpp"

namespace stagecraft {
namespace {

using test::near;

constexpr BesideExchange kBeside{.matrix = 1.5, .other = 1.2};

DeviceType slowed_by(const BesideExchange& beside, const std::string& vendor = "maker") {
  DeviceType type;
  type.name = vendor;
  type.vendor = vendor;
  type.beside_exchange = beside;
  return type;
}

// Device 0 computes 4 s of one work. Each of the others computes some seconds and then sends it so many seconds of
// bytes.
struct Sender {
  double after = 1, seconds = 2;
  int processors = 0;
};

struct Receiving {
  Work work{.device = 0, .seconds = Seconds{4}};
  std::vector<Sender> senders = {{}};
  Platform platform = make_star_platform(slowed_by(kBeside), 3, BytesPerSecond{1}, Seconds{0});
  std::vector<SpeedChange> speeds;
  TaskKind sent = TaskKind::transfer;
  double latency = 0;
  bool slows = true;
};

TaskGraph graph_of(const Receiving& one) {
  TaskGraph graph;
  Router router(one.platform);
  graph.successor_begin = {0};
  graph.program_begin = {0};
  const auto add = [&](const Work& work, int waits, const std::vector<TaskId>& next) {
    graph.works.push_back(work);
    graph.work.push_back(static_cast<std::int32_t>(graph.work.size()));
    graph.micro_batch.push_back(0);
    graph.waits.push_back(waits);
    graph.successors.insert(graph.successors.end(), next.begin(), next.end());
    graph.successor_begin.push_back(static_cast<std::int32_t>(graph.successors.size()));
    if (work.computes()) {
      graph.devices.push_back(work.device);
      graph.fixed_memory.emplace_back();
      graph.program.push_back(graph.tasks() - 1);
      graph.program_begin.push_back(static_cast<std::int32_t>(graph.program.size()));
    }
  };
  add(one.work, 0, {});
  for (std::size_t i = 0; i < one.senders.size(); ++i) {
    const auto [after, seconds, processors] = one.senders[i];
    const auto device = static_cast<std::int32_t>(i + 1);
    add({.device = device, .seconds = Seconds{after}}, 0, {graph.tasks() + 1});
    const Leg& leg = router.find(device, 0)->legs.front();
    add({.kind = one.sent,
         .device = device,
         .leg = static_cast<std::int32_t>(i),
         .members = static_cast<std::int32_t>(i),
         .seconds = Seconds{one.latency} + Bytes{seconds} / leg.bandwidth,
         .latency = Seconds{one.latency},
         .bytes = seconds,
         .processors = processors,
         .slows = one.slows},
        1, {});
    graph.legs.push_back(leg);
    graph.members.push_back({0, device});
  }
  return graph;
}

// When device 0 has done its work.
double end_of(const Receiving& one, ReplayFunction engine = replay_analytic) {
  const TaskGraph graph = graph_of(one);
  const ReplayRequest request{graph, one.platform, 1, one.speeds};
  return engine({&request, 1}).front().finish.front();
}

// 1 s is done when the bytes come; in their 2 s 2 / 1.5 s are done; the other 5/3 s follow.
TEST_CASE("a computation runs at 1 / factor of its speed while its device exchanges data", "[replay][beside]") {
  for (const EngineRow& engine : kEngines) {
    CAPTURE(engine.name);
    CHECK(end_of({}, engine.replay) == near(3 + 5.0 / 3));
    CHECK(end_of({.sent = TaskKind::all_reduce}, engine.replay) == near(3 + 5.0 / 3));
    CHECK(end_of({.senders = {{1, 100}}}, engine.replay) == near(1 + 3 * 1.5)); // to its end
    // A kernel is there while a latency passes, too: from 1 to 3.5.
    CHECK(end_of({.latency = 0.5}, engine.replay) == near(3.5 + (4 - 1 - 2.5 / 1.5)));
  }
}

// As of exchanges whose cost to what is computed beside them was measured with it.
TEST_CASE("an exchange that says so slows nothing down", "[replay][beside]") { CHECK(end_of({.slows = false}) == 4); }

// From 1 to 4 some bytes are always under way; two flows from 2 to 3, each with its links for itself, count once.
TEST_CASE("several exchanges at once slow computing down as one does", "[replay][beside]") {
  CHECK(end_of({.senders = {{1, 2}, {2, 2}}}) == near(4 + (4 - 1 - 3 / 1.5)));
  CHECK(end_of({.senders = {{1, 2}, {1.5, 1}}}) == near(3 + 5.0 / 3)); // one within the other
  CHECK(end_of({.senders = {{1, 0.75}, {2, 0.75}}}) == near(4 + 1.5 / 3));
}

TEST_CASE("passes take the factor of matrix products, steps the other, and their own exchanges none",
          "[replay][beside]") {
  const auto of = [](Work work) {
    work.device = 0;
    work.seconds = Seconds{4};
    return end_of({.work = work});
  };
  for (const TaskKind pass : {TaskKind::forward, TaskKind::backward, TaskKind::weight, TaskKind::recompute}) {
    CHECK(of({.kind = pass}) == near(3 + 5.0 / 3));
  }
  for (const TaskKind other : {TaskKind::optimizer, TaskKind::dequantize}) {
    CHECK(of({.kind = other}) == near(3 + (3 - 2 / 1.2)));
  }
  // Half of the pass computes: 2 s take 1 + 1.5 · 1 of it, so 1.25 times as long.
  CHECK(of({.kind = TaskKind::forward, .exchanging = 0.5}) == near(3 + (3 - 2 / 1.25)));
  CHECK(of({.kind = TaskKind::forward, .exchanging = 1}) == 4);
}

// A device of 100 multiprocessors whose memory has 10 B/s. What is sent has 1 B/s.
double by_rule(const std::vector<Sender>& senders, TaskKind computed = TaskKind::forward,
               TaskKind sent = TaskKind::transfer) {
  DeviceType type = slowed_by({.by_rule = true});
  type.processors = 100;
  type.memory_bandwidth = BytesPerSecond{10};
  return end_of({.work = {.kind = computed, .device = 0, .seconds = Seconds{4}},
                 .senders = senders,
                 .platform = make_star_platform(type, 3, BytesPerSecond{1}, Seconds{0}),
                 .sent = sent});
}

// 20 of 100 leave products four fifths: in 2 s 1.6 are done. Of the memory 2 B/s are taken of 10, or 3 where numbers
// are added up.
TEST_CASE("by the rule passes have the other multiprocessors, other kernels the rest of the memory's bandwidth",
          "[replay][beside]") {
  CHECK(by_rule({{1, 2, 20}}) == near(3 + (3 - 2 * 0.8)));
  CHECK(by_rule({{1, 2, 0}}) == 4);
  CHECK(by_rule({{1, 2, 90}}) == near(3 + (3 - 2 * 0.5))); // half at most
  CHECK(by_rule({{1, 2, 20}}, TaskKind::optimizer) == near(3 + (3 - 2 * 0.8)));
  CHECK(by_rule({{1, 2, 20}}, TaskKind::optimizer, TaskKind::all_reduce) == near(3 + (3 - 2 * 0.7)));
  CHECK(by_rule({{1, 2, 20}}, TaskKind::optimizer, TaskKind::all_gather) == near(3 + (3 - 2 * 0.8)));
}

TEST_CASE("of several exchanges at once the one that takes most counts", "[replay][beside]") {
  CHECK(by_rule({{1, 2, 20}, {2, 2, 40}}) == near(4 + (3 - 0.8 - 2 * 0.6)));
  CHECK(by_rule({{1, 3, 20}, {2, 1, 40}}) == near(4 + (3 - 2 * 0.8 - 0.6))); // one within the other
  CHECK(by_rule({{1, 3, 40}, {2, 1, 20}}) == near(4 + (3 - 3 * 0.6)));
  CHECK(by_rule({{1, 1, 20}, {1, 2, 40}}) == near(3 + (3 - 2 * 0.6)));
  CHECK(by_rule({{1, 1, 20}, {2, 1, 40}}) == near(3 + (3 - 0.8 - 0.6))); // one behind the other
}

TEST_CASE("copies by hosts slow nothing down", "[replay][beside]") {
  Receiving one;
  const TaskGraph graph = graph_of(one);
  const ReplayRequest request{graph, one.platform};
  CHECK(replay_analytic({&request, 1}).front().finish.front() > 4);
  one.platform.types.push_back(slowed_by(kBeside, "another maker")); // whose data comes through a host
  one.platform.devices[1].type = 1;
  CHECK(replay_analytic({&request, 1}).front().finish.front() == 4);
  for (const TaskKind copy : {TaskKind::to_host, TaskKind::from_host, TaskKind::copy, TaskKind::read}) {
    CHECK(end_of({.sent = copy}) == 4);
  }
}

// At half its speed a device has done 1 s at 2; until 3 it does 1/3 s; the other 8/3 s take twice as long.
TEST_CASE("a device that is slower anyway loses the same part of its speed", "[replay][beside][speeds]") {
  for (const EngineRow& engine : kEngines) {
    CAPTURE(engine.name);
    const Sender from_two{2, 1};
    CHECK(end_of({.senders = {from_two}, .speeds = {{0, Seconds{0}, 0.5}}}, engine.replay) == near(3 + 16.0 / 3));
    // Full speed from 2.5 on: 0.5/2/1.5 s are done until then, as many without the half until 3.
    CHECK(end_of({.senders = {from_two}, .speeds = {{0, Seconds{0}, 0.5}, {0, Seconds{2.5}, 1}}}, engine.replay) ==
          near(3 + (4 - 1 - 0.25 / 1.5 - 0.5 / 1.5)));
  }
}

TEST_CASE("the longer an exchange makes computing, the later it ends; a factor of 1 changes nothing",
          "[replay][beside]") {
  const auto at = [](double matrix) {
    Receiving one;
    one.platform.types.front().beside_exchange.matrix = matrix;
    return end_of(one);
  };
  double before = at(1);
  CHECK(before == 4);
  for (const double factor : {1.001, 1.17, 1.33, 2.0, 10.0}) {
    CHECK(at(factor) == near(3 + (3 - 2 / factor)));
    CHECK(at(factor) > before);
    before = at(factor);
  }
}

// Two replicas with a forward of 1 s and a backward of 4 s, whose gradients are reduced in halves of 1 s each, the
// first beside the second half of backward: that begins at 3, has done 2/3 s when the reduction ends at 4, and ends at
// 4 + 4/3. The second reduction ends a second later.
TEST_CASE("a backward takes longer beside the reduction of its first gradients", "[replay][beside][all-reduce]") {
  constexpr double kBytes = 100; // of a half: 2 (r - 1)/r of them at 100 B/s take 1 s
  PlanCost cost;
  StageCost& stage = cost.stages.emplace_back();
  stage.gradients = Bytes{2 * kBytes};
  stage.buckets = {{.part = 0.5, .bytes = Bytes{kBytes}}, {.part = 0.5, .bytes = Bytes{kBytes}}};
  for (DeviceId device = 0; device < 2; ++device) {
    ReplicaCost replica;
    replica.device = device;
    replica.forward = Seconds{1};
    replica.backward_input = replica.backward_weight = Seconds{2};
    stage.replicas.push_back(replica);
  }
  const Schedule schedule = test::schedule_of("accumulate", 1, 1);
  const auto ends = [&](const BesideExchange& beside, ReplayFunction engine) {
    const Platform platform = make_star_platform(slowed_by(beside), 2, BytesPerSecond{kBytes}, Seconds{0});
    Router router(platform);
    const TaskGraph graph = make_task_graph({.cost = cost, .schedule = schedule, .router = router});
    const ReplayRequest request{graph, platform, 2};
    const Timeline timeline = engine({&request, 1}).front();
    const TaskId last = graph.program_of(0).back();
    return std::pair(timeline.finish[last], timeline.finish[graph.tasks() + last]);
  };
  for (const EngineRow& engine : kEngines) {
    CAPTURE(engine.name);
    CHECK(ends({}, engine.replay).first == near(6));
    const auto [first, second] = ends(kBeside, engine.replay);
    CHECK(first == near(4 + 4.0 / 3 + 1));
    CHECK(second == near(2 * first)); // each iteration alike
  }
}

// The first stage sends for 1 s from 2 on, so its second forward takes 2 + 1/3 s, and what that sends is under way from
// 13/3 to 16/3. The second stage computes from 3 on: 4/3 s by then, and the other 2/3 s in exactly that second.
TEST_CASE("sends slow down both of their ends, and what is late by that comes later itself", "[replay][beside]") {
  const test::Pipeline pipeline{{{2, 1, 0}, {2, 1, 0}}, 2, {1}, 1, 0};
  Platform platform = make_star_platform(slowed_by(kBeside), 2, BytesPerSecond{1}, Seconds{0});
  Router router(platform);
  const PlanCost cost = test::cost_of(pipeline);
  const Schedule schedule = test::schedule_of("gpipe", 2, 2);
  const TaskGraph graph = make_task_graph({.cost = cost, .schedule = schedule, .router = router});
  const ReplayRequest request{graph, platform};
  for (const EngineRow& engine : kEngines) {
    CAPTURE(engine.name);
    const std::vector<double> finish = engine.replay({&request, 1}).front().finish;
    CHECK(finish[graph.program_of(0)[1]] == near(13.0 / 3));
    CHECK(finish[graph.program_of(1)[0]] == near(16.0 / 3));
    CHECK(finish[graph.program_of(1)[1]] == near(16.0 / 3 + 2)); // nothing is under way any more
  }
}

struct Case {
  test::RandomCase random;
  Platform platform;
  TaskGraph graph;
};

Case random_case(const ScheduleRow& row, std::mt19937& random, bool ordered) {
  Case one{test::random_case(row, random), {}, {}};
  const test::Pipeline& pipeline = one.random.pipeline;
  one.platform =
      make_star_platform(slowed_by({}), pipeline.ranks, BytesPerSecond{pipeline.bandwidth}, Seconds{pipeline.latency});
  const test::PlacedPipeline placed = test::placed(pipeline, one.random.schedule);
  Router router(one.platform);
  one.graph = make_task_graph({.cost = placed.cost,
                               .schedule = one.random.schedule,
                               .router = router,
                               .barrier = one.random.barrier,
                               .rank_of = placed.rank_of});
  if (ordered) {
    order_transfers(one.graph);
  }
  return one;
}

// The definition, evaluated at each end of any transfer: what a computation has done of its work from its start to its
// finish. Returns the largest difference from its work, in parts of all time.
double worst_of(const Case& one, const Timeline& timeline, const BesideExchange& given) {
  const auto tasks = static_cast<std::size_t>(one.graph.tasks());
  double worst = 0;
  for (std::size_t i = 0; i < timeline.start.size(); ++i) {
    const Work& work = one.graph.works[one.graph.work[i % tasks]];
    if (!work.computes()) {
      continue;
    }
    std::vector<std::pair<double, double>> beside;
    std::vector<double> times = {timeline.start[i], timeline.finish[i]};
    for (std::size_t k = 0; k < timeline.start.size(); ++k) {
      const Work& sent = one.graph.works[one.graph.work[k % tasks]];
      if (sent.transfers()) {
        const std::vector<std::int32_t>& members = one.graph.members[sent.members];
        if (std::find(members.begin(), members.end(), work.device) != members.end()) {
          beside.emplace_back(timeline.start[k], timeline.finish[k]);
          for (const double time : {timeline.start[k], timeline.finish[k]}) {
            times.push_back(std::clamp(time, timeline.start[i], timeline.finish[i]));
          }
        }
      }
    }
    std::sort(times.begin(), times.end());
    double done = 0;
    for (std::size_t k = 1; k < times.size(); ++k) {
      const double middle = (times[k - 1] + times[k]) / 2;
      const bool slowed = std::any_of(beside.begin(), beside.end(), [&](const auto& stretch) {
        return stretch.first < middle && middle < stretch.second;
      });
      const double factor = work.kind == TaskKind::optimizer ? given.other : given.matrix;
      done += (times[k] - times[k - 1]) / (slowed ? factor : 1);
    }
    worst = std::max(worst, std::abs(done - work.seconds.value) / timeline.end());
  }
  return worst;
}

void check_definition(const ScheduleRow& row, const EngineRow& engine, const BesideExchange& beside, int each) {
  std::mt19937 random(5);
  std::vector<Case> cases;
  std::vector<ReplayRequest> requests;
  for (int n = 0; n < each; ++n) {
    cases.push_back(random_case(row, random, n % 2 == 0));
  }
  for (const Case& one : cases) {
    requests.push_back({one.graph, one.platform, one.random.iterations});
  }
  const std::vector<Timeline> alone = engine.replay(requests);
  for (Case& one : cases) {
    one.platform.types.front().beside_exchange = beside;
  }
  const std::vector<Timeline> slowed = engine.replay(requests);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(row.name, engine.name, i);
    CHECK(worst_of(cases[i], slowed[i], beside) < 1e-9);
    if (engine.replay == replay_analytic) {
      CHECK(slowed[i].end() >= alone[i].end()); // durations grow, and the recurrence is monotone in them
      CHECK(replay_analytic({&requests[i], 1}).front().finish == slowed[i].finish); // by itself as among others
    }
  }
}

TEST_CASE("for every schedule the integral of a computation's speed is its work", "[replay][beside][conformance]") {
  for (const ScheduleRow& row : schedules()) {
    for (const EngineRow& engine : kEngines) {
      check_definition(row, engine, kBeside, 3);
      if (engine.replay == replay_analytic) {
        // With little of the speed left, rounding at a computation's end, where it sends, would decide what is slowed.
        check_definition(row, engine, {.matrix = 10, .other = 5}, 20);
      }
    }
  }
}

// One micro-batch: only one device works at any time, and none while anything is sent.
TEST_CASE("where no computation meets an exchange nothing changes, to the last bit", "[replay][beside]") {
  const test::Pipeline pipeline{{{2, 1, 1}, {3, 1, 0.7}, {0.3, 1.1, 1}}, 3, {7, 3}, 2, 0.1};
  const PlanCost cost = test::cost_of(pipeline);
  const Schedule schedule = test::schedule_of("1f1b", 3, 1);
  for (const EngineRow& engine : kEngines) {
    CAPTURE(engine.name);
    const auto times = [&](const BesideExchange& beside) {
      const Platform platform = make_star_platform(slowed_by(beside), 3, BytesPerSecond{2}, Seconds{0.1});
      Router router(platform);
      const TaskGraph graph = make_task_graph({.cost = cost, .schedule = schedule, .router = router});
      const ReplayRequest request{graph, platform};
      return engine.replay({&request, 1}).front().finish;
    };
    CHECK(times(kBeside) == times({}));
  }
}

} // namespace
} // namespace stagecraft
